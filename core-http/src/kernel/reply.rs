//! An answer on its way out: status, headers, content.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};

use super::body::{Body, bytes_body, empty_body};

/// The content type of JSON.
pub(super) const JSON: &str = "application/json";

/// What an answer is made of.
#[derive(Debug, Default)]
pub enum Content {
    /// Nothing.
    #[default]
    Empty,
    /// JSON, as text.
    Json(String),
    /// Bytes of a content type.
    Bytes(&'static str, Bytes),
    /// Bytes of a content type that come while the answer is being sent.
    Stream(&'static str, Body),
}

impl Content {
    /// The content type, if there is content.
    pub(super) const fn content_type(&self) -> Option<&'static str> {
        match self {
            Self::Empty => None,
            Self::Json(_) => Some(JSON),
            Self::Bytes(content_type, _) | Self::Stream(content_type, _) => Some(content_type),
        }
    }

    fn into_body(self) -> Body {
        match self {
            Self::Empty => empty_body(),
            Self::Json(text) => bytes_body(text),
            Self::Bytes(_, bytes) => bytes_body(bytes),
            Self::Stream(_, body) => body,
        }
    }
}

/// How many headers are added to an answer by a service and its gateway, as a rule.
const ADDED: usize = 12;

/// An answer whose type is forgotten.
#[derive(Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The content.
    pub content: Content,
    /// Headers besides `Content-Type` and `ETag`.
    pub headers: HeaderMap,
    /// The entity tag, without quotes.
    pub etag: Option<String>,
}

impl Reply {
    pub(crate) fn into_response(self) -> Response<Body> {
        let mut headers = self.headers;
        headers.reserve(ADDED);
        // What the handler says itself holds.
        if let Some(content_type) = self.content.content_type() {
            let value = HeaderValue::from_static(content_type);
            headers.entry(header::CONTENT_TYPE).or_insert(value);
        }
        if let Some(etag) = self.etag
            && let Ok(value) = HeaderValue::try_from(format!("\"{etag}\""))
        {
            headers.entry(header::ETAG).or_insert(value);
        }
        let mut response = Response::new(self.content.into_body());
        *response.status_mut() = self.status;
        *response.headers_mut() = headers;
        response
    }
}
