//! A call of the API before it is sent.

use std::fmt;

use bytes::Bytes;
use core_domain::kernel::Secret;
use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

/// What stands in a path or a query as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A call of the API.
#[derive(Clone)]
pub(crate) struct Call {
    /// `product.verb`: which codes may come, and what the log calls it.
    pub(crate) operation: &'static str,
    pub(crate) method: Method,
    /// Path and query behind the base URL.
    pub(crate) path: String,
    /// The body, with its type.
    pub(crate) body: Option<(String, Bytes)>,
    /// In place of the API token.
    pub(crate) upload_token: Option<Secret>,
    /// Whether the answer may repeat what must not be in a log.
    pub(crate) is_confidential: bool,
    /// Whether it carries files.
    pub(crate) is_upload: bool,
}

// Bodies hold secrets and files.
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
    /// A call of the path of these segments, which may hold anything.
    pub(crate) fn new(method: Method, operation: &'static str, segments: &[&str]) -> Self {
        let mut path = String::new();
        for segment in segments {
            path.push('/');
            path.extend(utf8_percent_encode(segment, PLAIN));
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
        self.path.extend(utf8_percent_encode(&value, PLAIN));
        self
    }

    pub(crate) fn body(mut self, content_type: impl Into<String>, body: impl Into<Bytes>) -> Self {
        self.body = Some((content_type.into(), body.into()));
        self
    }

    pub(crate) fn json(self, body: &impl Serialize) -> Self {
        // Of texts and numbers alone, which always are JSON.
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

    /// Whether it changes nothing.
    pub(crate) fn reads(&self) -> bool {
        self.method == Method::GET
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leaves_its_segment_or_its_parameter() {
        let call = Call::new(Method::GET, "d1.find", &["accounts", "../x?y", "a b/c#d"]);
        let call = call.query("name", "a&b=c").query("page", 2);
        let expected = "/accounts/..%2Fx%3Fy/a%20b%2Fc%23d?name=a%26b%3Dc&page=2";
        assert_eq!(call.path, expected);
    }
}
