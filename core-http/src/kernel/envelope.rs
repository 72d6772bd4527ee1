//! The error envelope, the one place that writes it.

use core_domain::kernel::{Code, Error};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::{Map, Value, json};

use super::better_auth;
use super::body::{Body, bytes_body};
use super::oauth_error;
use super::parse::is_form;
use super::status::status_of;

/// What better-auth's clients read instead of `Retry-After`.
const X_RETRY_AFTER: HeaderName = HeaderName::from_static("x-retry-after");

/// What surrounds an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ErrorStyle {
    /// `{"error":{code,message,requestId,details}}`.
    #[default]
    Envelope,
    /// The envelope, and `code` and `message` beside it, as better-auth's clients want.
    TopLevelCode,
    /// The envelope without `details`.
    WithoutDetails,
    /// The envelope, never cached; to whom sent a form, as OAuth's clients do, [`ErrorStyle::OAuthForm`].
    OAuth,
    /// `{"error","error_description"}` of RFC 6749, never cached.
    OAuthForm,
    /// The envelope; to browsers that ask for a page, [`ErrorStyle::Html`].
    Page,
    /// A page for people.
    Html,
}

impl ErrorStyle {
    /// The style of an answer to a request with these headers.
    pub(super) fn for_request(self, headers: &HeaderMap) -> Self {
        let content_type = headers.get(header::CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        match self {
            Self::OAuth if is_form(content_type) => Self::OAuthForm,
            Self::Page if wants_page(headers) => Self::Html,
            style => style,
        }
    }
}

/// Tells whether the client is a browser that wants to show the answer.
fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let mut accepted = accepted.filter_map(|value| value.to_str().ok());
    accepted.any(|value| value.to_ascii_lowercase().contains("text/html"))
}

/// The answer to a request that failed; in the status of its code, unless another one is given. What broke on our side goes
/// to the log alone.
#[must_use]
pub fn error_response(
    error: &Error,
    request_id: &str,
    style: ErrorStyle,
    status: Option<StatusCode>,
) -> Response<Body> {
    let code = error.code();
    let status = status.unwrap_or_else(|| status_of(code));
    if status.is_server_error() {
        tracing::error!(request_id, code = code.as_str(), cause = ?error, "request failed");
    }
    let (code, message) = worded(error, style);
    let details = error.details();
    let body = match style {
        ErrorStyle::OAuthForm => oauth_error::body(error, &message),
        style => body(code, &message, request_id, &details, style),
    };
    let mut response = Response::new(bytes_body(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    if matches!(style, ErrorStyle::OAuth | ErrorStyle::OAuthForm) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if let Some(seconds) = retry_after(code, &details) {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        if style == ErrorStyle::TopLevelCode {
            headers.insert(X_RETRY_AFTER, HeaderValue::from(seconds));
        }
    }
    response
}

/// Returns the body of an error response, for a refusal that is stored or written without a service.
pub(crate) fn error_body(error: &Error, request_id: &str, style: ErrorStyle) -> String {
    let (code, message) = worded(error, style);
    body(code, &message, request_id, &error.details(), style).to_string()
}

/// The code and message of the style.
fn worded(error: &Error, style: ErrorStyle) -> (Code, String) {
    let (code, message) = (error.code(), message_of(error));
    match style {
        ErrorStyle::TopLevelCode => better_auth::to_better_auth(error, code, message),
        _ => (code, message),
    }
}

fn body(code: Code, message: &str, request_id: &str, details: &Value, style: ErrorStyle) -> Value {
    let mut error = Map::new();
    error.insert("code".into(), code.as_str().into());
    error.insert("message".into(), message.into());
    error.insert("requestId".into(), request_id.into());
    if style != ErrorStyle::WithoutDetails {
        error.insert("details".into(), details.clone());
    }
    let mut body = json!({ "error": error });
    if style == ErrorStyle::TopLevelCode {
        body["code"] = code.as_str().into();
        body["message"] = message.into();
    }
    body
}

fn message_of(error: &Error) -> String {
    match error {
        Error::Store(_) => store_message(error.code()).to_owned(),
        error => error.to_string(),
    }
}

const fn store_message(code: Code) -> &'static str {
    match code {
        Code::InvalidCursor => "The cursor does not belong to this list.",
        Code::Conflict => "The request contradicts what is stored.",
        Code::ServiceUnavailable => "This is not possible at the moment.",
        _ => "Something went wrong on our side.",
    }
}

/// Whole seconds; from `details.retryAfter` where the refusal knows better.
fn retry_after(code: Code, details: &Value) -> Option<u64> {
    let known = details.get("retryAfter").and_then(Value::as_u64);
    match code {
        Code::IdempotencyInProgress | Code::ServiceUnavailable => Some(known.unwrap_or(1)),
        Code::RateLimited => known,
        _ => None,
    }
}
