//! What a handler answers.

use std::any::TypeId;

use core_domain::kernel::{Error, Result};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use serde::Serialize;

use super::{Body, bytes_body, empty_body};

/// A successful answer: a body, and what surrounds it. `Output<()>` has no body and is 204 unless told otherwise.
#[derive(Clone, Debug)]
pub struct Output<T> {
    body: T,
    status: Option<StatusCode>,
    tag: Option<String>,
    headers: HeaderMap,
}

impl<T> Output<T> {
    /// Answers the body with the first success status of the row.
    pub fn new(body: T) -> Self {
        Self {
            body,
            status: None,
            tag: None,
            headers: HeaderMap::new(),
        }
    }

    /// Names the record's version; becomes the `ETag`.
    #[must_use]
    pub fn version(self, version: i64) -> Self {
        self.tag(version.to_string())
    }

    /// Names the `ETag`, without quotes.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.tag = Some(tag.into());
        self
    }

    /// Answers another success status of the row.
    #[must_use]
    pub fn status(mut self, status: StatusCode) -> Self {
        self.status = Some(status);
        self
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.append(name, value);
        self
    }
}

impl<T> From<T> for Output<T> {
    fn from(body: T) -> Self {
        Self::new(body)
    }
}

/// An answer whose type is forgotten: what is stored for idempotency keys, and sent.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The status.
    pub status: StatusCode,
    /// The JSON text of the body, if there is one.
    pub body: Option<String>,
    /// Headers besides `Content-Type` and `ETag`.
    pub headers: HeaderMap,
    /// The entity tag without quotes.
    pub tag: Option<String>,
}

impl Reply {
    /// Writes the body down.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when it cannot be JSON.
    pub fn of<T: Serialize + 'static>(output: &Output<T>, default: StatusCode) -> Result<Self> {
        let bodiless = TypeId::of::<T>() == TypeId::of::<()>();
        let body = if bodiless {
            None
        } else {
            let text = serde_json::to_string(&output.body)
                .map_err(|error| Error::Internal(format!("the answer is no JSON: {error}")))?;
            Some(text)
        };
        Ok(Self {
            status: output.status.unwrap_or(if bodiless {
                StatusCode::NO_CONTENT
            } else {
                default
            }),
            body,
            headers: output.headers.clone(),
            tag: output.tag.clone(),
        })
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        let mut response = Response::new(self.body.map_or_else(empty_body, bytes_body));
        *response.status_mut() = self.status;
        if self.status != StatusCode::NO_CONTENT {
            response.headers_mut().insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            );
        }
        if let Some(tag) = self.tag
            && let Ok(value) = HeaderValue::from_str(&format!("\"{tag}\""))
        {
            response.headers_mut().insert(header::ETAG, value);
        }
        response.headers_mut().extend(self.headers);
        response
    }
}
