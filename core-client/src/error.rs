//! The errors of the client.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

/// A result of the client.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reasons why a call failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No complete response arrived.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The server responded with an error.
    #[error(transparent)]
    Api(Box<ApiError>),
    /// The server sent a response that this version of the client does not understand.
    #[error("{operation}: the response is not the expected JSON: {problem}")]
    Decode {
        /// The name of the operation, such as `get_job`.
        operation: &'static str,
        /// The description of the first deviation.
        problem: String,
    },
    /// An argument cannot be sent, for example an empty id. The value is a description.
    #[error("{0}")]
    Argument(String),
    /// The content of an upload could not be read.
    #[error("failed to read the upload")]
    Upload(#[source] std::io::Error),
    /// The [`TokenSource`](crate::TokenSource) has no credential for the request.
    #[error(transparent)]
    Credential(Box<dyn StdError + Send + Sync>),
    /// The address of IAM could not be looked up at the gateway. The value is the reason.
    #[error("{0}")]
    Discovery(String),
    /// The client could not be set up.
    #[error("failed to set up the client: {0}")]
    Setup(String),
}

impl Error {
    /// Returns the error response of the server, if that is the reason.
    #[must_use]
    pub fn api(&self) -> Option<&ApiError> {
        match self {
            Self::Api(error) => Some(error),
            _ => None,
        }
    }

    /// Returns whether the server responded with this error code.
    #[must_use]
    pub fn is_code(&self, code: &str) -> bool {
        self.api().is_some_and(|error| error.code == code)
    }

    /// Returns the status code of the error response, if that is the reason.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.api().map(|error| error.status)
    }
}

/// A request to which no complete response arrived.
#[derive(Debug)]
#[non_exhaustive]
pub struct TransportError {
    /// The stage at which the request failed.
    pub stage: TransportStage,
    /// The address without query string.
    pub url: String,
    /// The number of attempts that were made.
    pub attempts: u32,
    source: Box<dyn StdError + Send + Sync>,
}

/// The stage at which a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportStage {
    /// No connection could be opened; the server has not received the request.
    Connect,
    /// The request was sent, but the response did not start.
    Request,
    /// The response ended before it was complete.
    Response,
    /// The server did not respond in time.
    Timeout,
}

impl TransportError {
    pub(crate) fn new(
        stage: TransportStage,
        url: &str,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        let url = url.split('?').next().unwrap_or_default().to_owned();
        Self {
            stage,
            url,
            attempts: 1,
            source: source.into(),
        }
    }
}

impl fmt::Display for TransportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = &self.url;
        match self.stage {
            TransportStage::Connect => write!(f, "failed to connect to {url}")?,
            TransportStage::Request => write!(f, "{url} closed the connection without a response")?,
            TransportStage::Response => write!(f, "the response of {url} is incomplete")?,
            TransportStage::Timeout => write!(f, "{url} did not respond in time")?,
        }
        if self.attempts > 1 {
            write!(f, " ({} attempts)", self.attempts)?;
        }
        Ok(())
    }
}

impl StdError for TransportError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        Some(self.source.as_ref())
    }
}

/// An error response of the server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ApiError {
    /// The status code of the response.
    pub status: u16,
    /// The error code, for programs, such as `NOT_FOUND`. Its meaning never changes. `HTTP_<status>` if the response has
    /// no error of the API, for example if it comes from a proxy.
    pub code: String,
    /// The message, for people.
    pub message: String,
    /// The id of the request in the logs of the server; `None` if the response has none.
    pub request_id: Option<String>,
    /// Further data about the error; its fields depend on the code. Empty if there are none.
    pub details: Map<String, Value>,
    /// The time after which the server accepts the request again; `None` if it sent none.
    pub retry_after: Option<Duration>,
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} {})", self.message, self.status, self.code)
    }
}

impl StdError for ApiError {}

/// A violation of a rule in a request.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct Issue {
    /// The path to the invalid value: field names and array positions, starting at the root of the body.
    #[serde(default)]
    pub path: Vec<String>,
    /// The description of the violation, for people.
    #[serde(default)]
    pub message: String,
}

impl ApiError {
    /// Parses an error response: the envelope of the API, or the form of RFC 6749.
    pub(crate) fn parse(status: u16, body: &[u8], retry_after: Option<Duration>) -> Self {
        let mut error = Self {
            status,
            code: format!("HTTP_{status}"),
            message: format!("The server responded with the status {status}."),
            request_id: None,
            details: Map::new(),
            retry_after,
        };
        let Ok(Value::Object(mut body)) = serde_json::from_slice::<Value>(body) else {
            return error;
        };
        match body.remove("error") {
            Some(Value::Object(envelope)) => error.read_envelope(envelope),
            Some(Value::String(code)) => {
                error.message =
                    text(&mut body, "error_description").unwrap_or_else(|| code.clone());
                error.code = code;
            }
            _ => {}
        }
        error
    }

    fn read_envelope(&mut self, mut envelope: Map<String, Value>) {
        if let Some(code) = text(&mut envelope, "code") {
            self.code = code;
        }
        if let Some(message) = text(&mut envelope, "message") {
            self.message = message;
        }
        self.request_id = text(&mut envelope, "requestId");
        if let Some(Value::Object(details)) = envelope.remove("details") {
            self.details = details;
        }
    }

    /// Returns the violations of the request in `details.issues`; empty if there are none.
    #[must_use]
    pub fn issues(&self) -> Vec<Issue> {
        let issues = self.details.get("issues").cloned().unwrap_or_default();
        serde_json::from_value(issues).unwrap_or_default()
    }
}

fn text(object: &mut Map<String, Value>, field: &str) -> Option<String> {
    match object.remove(field) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_envelope_of_the_api_is_parsed() {
        let body = br#"{"error":{"code":"VALIDATION_ERROR","message":"Wrong.","requestId":"r-1",
            "details":{"issues":[{"path":["name"],"message":"is required"}]}}}"#;
        let error = ApiError::parse(400, body, None);
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            ("VALIDATION_ERROR", "Wrong.")
        );
        assert_eq!(error.request_id.as_deref(), Some("r-1"));
        assert_eq!(error.issues()[0].message, "is required");
    }

    #[test]
    fn the_error_form_of_oauth_is_parsed() {
        let body = br#"{"error":"slow_down","error_description":"Too fast."}"#;
        let error = ApiError::parse(400, body, None);
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            ("slow_down", "Too fast.")
        );
    }

    #[test]
    fn a_page_of_a_proxy_is_reported_by_its_status() {
        let error = ApiError::parse(502, b"<html>Bad gateway</html>", None);
        assert_eq!(error.code, "HTTP_502");
    }
}
