//! An API call before it is sent.

use std::fmt;

use bytes::Bytes;
use core_domain::kernel::Secret;
use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

/// The characters that are not percent-encoded in a path or query.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// An API call.
#[derive(Clone)]
pub(crate) struct Call {
    /// The operation as `product.verb`. It decides the meaning of error codes and appears in the log.
    pub(crate) operation: &'static str,
    pub(crate) method: Method,
    /// The path and query, appended to the base URL.
    pub(crate) path: String,
    /// The content type and the body; `None` if there is no body.
    pub(crate) body: Option<(String, Bytes)>,
    /// The token that replaces the API token; `None` for most calls.
    pub(crate) upload_token: Option<Secret>,
    /// Whether the response can repeat confidential values, which must not be logged.
    pub(crate) is_confidential: bool,
    /// Whether the call uploads files. Uploads have a longer timeout.
    pub(crate) is_upload: bool,
}

// Bodies contain secrets and files, so they are not printed.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("operation", &self.operation)
            .field("method", &self.method)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Call {
    /// Creates a call of the path with these segments. The segments may contain any characters.
    pub(crate) fn new(method: Method, operation: &'static str, segments: &[&str]) -> Self {
        let mut path = String::new();
        for segment in segments {
            path.push('/');
            path.extend(utf8_percent_encode(segment, UNRESERVED));
        }
        Self {
            operation,
            method,
            path,
            body: None,
            upload_token: None,
            is_confidential: false,
            is_upload: false,
        }
    }

    pub(crate) fn query(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.path
            .push(if self.path.contains('?') { '&' } else { '?' });
        self.path.push_str(name);
        self.path.push('=');
        let value = value.to_string();
        self.path.extend(utf8_percent_encode(&value, UNRESERVED));
        self
    }

    pub(crate) fn body(mut self, content_type: impl Into<String>, body: impl Into<Bytes>) -> Self {
        self.body = Some((content_type.into(), body.into()));
        self
    }

    pub(crate) fn json(self, body: &impl Serialize) -> Self {
        // The body consists only of texts and numbers, so the encoding never fails.
        let body = serde_json::to_vec(body).unwrap_or_default();
        self.body("application/json", body)
    }

    pub(crate) fn with_upload_token(mut self, token: Secret) -> Self {
        self.upload_token = Some(token);
        self
    }

    pub(crate) const fn confidential(mut self) -> Self {
        self.is_confidential = true;
        self
    }

    pub(crate) const fn upload(mut self) -> Self {
        self.is_upload = true;
        self
    }

    /// Returns whether the call only reads.
    pub(crate) fn is_read_only(&self) -> bool {
        self.method == Method::GET
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_and_parameters_are_percent_encoded() {
        let call = Call::new(Method::GET, "d1.find", &["accounts", "../x?y", "a b/c#d"]);
        let call = call.query("name", "a&b=c").query("page", 2);
        let expected = "/accounts/..%2Fx%3Fy/a%20b%2Fc%23d?name=a%26b%3Dc&page=2";
        assert_eq!(call.path, expected);
    }
}
