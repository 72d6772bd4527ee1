//! Responses to scripts, and reading of their request bodies.

use bytes::Bytes;
use core_domain::port::Cause;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use serde_json::Value;

use super::calls::{Call, TooManyCalls};
use crate::error::LocalError;
use crate::host::SiteBody;
use crate::workerd::refusal::Refusal;

/// An error that is reported to the script.
#[derive(Debug)]
pub(super) struct BindingError {
    pub(super) status: StatusCode,
    pub(super) message: String,
}

/// The response to a script, or the error in its place.
pub(super) type BindingResult = Result<Response<SiteBody>, BindingError>;

impl BindingError {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { status, message }
    }

    pub(super) fn missing(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn too_large(message: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    pub(super) fn unsupported(what: &str) -> Self {
        let message = format!("the local provider does not support {what}");
        Self::new(StatusCode::NOT_IMPLEMENTED, message)
    }

    /// Returns the error as text, and also as the reason phrase of the status line, which `workerd` shows to the
    /// script.
    pub(super) fn plain(self) -> Response<SiteBody> {
        let mut answer = Response::new(full(self.message.clone()));
        *answer.status_mut() = self.status;
        let is_plain = |c: &char| c.is_ascii_graphic() || *c == ' ';
        let reason: String = self.message.chars().filter(is_plain).collect();
        if let Ok(reason) = ReasonPhrase::try_from(reason) {
            answer.extensions_mut().insert(reason);
        }
        answer
    }
}

impl From<LocalError> for BindingError {
    fn from(error: LocalError) -> Self {
        match error {
            LocalError::Missing(_) => Self::missing(error.to_string()),
            LocalError::Invalid(message) => Self::bad(message),
            LocalError::Limit(message) => Self::too_large(message),
            error => {
                let message = error.to_string();
                let cause = Cause::new(error);
                tracing::error!(%cause, "a worker's binding failed");
                Self::new(StatusCode::INTERNAL_SERVER_ERROR, message)
            }
        }
    }
}

impl From<TooManyCalls> for BindingError {
    fn from(error: TooManyCalls) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, error.to_string())
    }
}

impl From<Refusal> for BindingError {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.status(), refusal.to_string())
    }
}

/// Reads the whole body of a request. The call reserves memory for it.
pub(super) async fn read_body(
    body: &mut Incoming,
    max_bytes: usize,
    call: &Call,
) -> Result<Vec<u8>, BindingError> {
    let too_large =
        || BindingError::too_large(format!("the request is larger than {max_bytes} bytes"));
    // The request may announce its length.
    let announced = body.size_hint().lower();
    if announced > max_bytes as u64 {
        return Err(too_large());
    }
    let mut content = Vec::new();
    while let Some(piece) = next_piece(body).await? {
        if content.len() + piece.len() > max_bytes {
            return Err(too_large());
        }
        call.reserve(piece.len())?;
        content.extend_from_slice(&piece);
    }
    Ok(content)
}

/// Maximum number of bytes that are read from the request body of a failed call.
const MAX_DISCARDED: usize = 256 * 1024 * 1024;

/// Reads and drops the rest of a body. A worker does not read the response while it still sends its request. Without
/// this it would wait forever, or lose the connection and the error message.
pub(super) async fn discard(body: &mut Incoming) {
    let mut discarded = 0;
    while discarded <= MAX_DISCARDED {
        // An interrupted request has no more data.
        let Ok(Some(piece)) = next_piece(body).await else {
            return;
        };
        discarded += piece.len();
    }
}

/// Returns the next piece of a body; `None` at its end.
pub(super) async fn next_piece(body: &mut Incoming) -> Result<Option<Bytes>, BindingError> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| BindingError::bad("the request was interrupted"))?;
        if let Ok(piece) = frame.into_data() {
            return Ok(Some(piece));
        }
    }
    Ok(None)
}

/// Returns the value of a header as text; `None` if it is absent or not text.
pub(super) fn header_text<'a>(headers: &'a http::HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Returns a body with content that is completely in memory.
pub(super) fn full(content: impl Into<Bytes>) -> SiteBody {
    let body = Full::new(content.into());
    body.map_err(|never| match never {}).boxed()
}

/// Returns a JSON response with this value.
pub(super) fn json(value: &Value) -> Response<SiteBody> {
    json_text(value.to_string())
}

/// Returns a JSON response with this text, which must be valid JSON.
pub(super) fn json_text(text: impl Into<Bytes>) -> Response<SiteBody> {
    let mut answer = Response::new(full(text));
    let kind = HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}
