//! An API call before it is sent.

use std::fmt;

use http::Method;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// The characters that are not percent-encoded in a path, query or form.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// An API call.
#[derive(Clone)]
pub(crate) struct Call {
    /// The endpoint as `object.verb`. It has a rate limit of its own and appears in the log.
    pub(crate) endpoint: &'static str,
    pub(crate) method: Method,
    /// The path, appended to the base URL.
    pub(crate) path: String,
    /// The encoded parameters: the body of a POST, the query of others. They can contain personal data.
    pub(crate) params: String,
    /// The idempotency key of a change.
    pub(crate) key: Option<String>,
}

// Parameters contain personal data, so they are not printed.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("endpoint", &self.endpoint)
            .field("path", &self.path)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl Call {
    fn new(method: Method, endpoint: &'static str, segments: &[&str]) -> Self {
        let mut path = "/v1".to_owned();
        for segment in segments {
            path.push('/');
            path.extend(utf8_percent_encode(segment, UNRESERVED));
        }
        Self {
            endpoint,
            method,
            path,
            params: String::new(),
            key: None,
        }
    }

    /// Creates a call that reads the path with these segments. The segments may contain any characters.
    pub(crate) fn get(endpoint: &'static str, segments: &[&str]) -> Self {
        Self::new(Method::GET, endpoint, segments)
    }

    /// Creates a call that changes something.
    pub(crate) fn post(endpoint: &'static str, segments: &[&str]) -> Self {
        Self::new(Method::POST, endpoint, segments)
    }

    /// Creates a call that deletes something.
    pub(crate) fn delete(endpoint: &'static str, segments: &[&str]) -> Self {
        Self::new(Method::DELETE, endpoint, segments)
    }

    /// Adds a parameter. The name of a member is written as `object[member]`.
    pub(crate) fn param(mut self, name: &str, value: impl fmt::Display) -> Self {
        if !self.params.is_empty() {
            self.params.push('&');
        }
        self.params.extend(utf8_percent_encode(name, UNRESERVED));
        self.params.push('=');
        let value = value.to_string();
        self.params.extend(utf8_percent_encode(&value, UNRESERVED));
        self
    }

    /// Adds a parameter if there is a value.
    pub(crate) fn optional(self, name: &str, value: Option<impl fmt::Display>) -> Self {
        match value {
            Some(value) => self.param(name, value),
            None => self,
        }
    }

    pub(crate) fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Returns the call with another key: the original one for the first generation. A key whose stored response is a
    /// failure of the server can never succeed.
    pub(crate) fn generation(&self, generation: u32) -> Self {
        let mut call = self.clone();
        if let Some(key) = &self.key
            && generation > 1
        {
            call.key = Some(format!("{key}:{generation}"));
        }
        call
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
        let call = Call::post("invoice.create", &["invoices", "../x?y"])
            .param("metadata[invoiceId]", "a&b=c d")
            .optional("name", None::<&str>)
            .param("amount", -5);
        assert_eq!(call.path, "/v1/invoices/..%2Fx%3Fy");
        let expected = "metadata%5BinvoiceId%5D=a%26b%3Dc%20d&amount=-5";
        assert_eq!(call.params, expected);
        assert!(!format!("{call:?}").contains("a%26b"));
    }

    #[test]
    fn only_later_generations_change_the_key() {
        let call = Call::post("invoice.pay", &[]).key("k");
        assert_eq!(call.generation(1).key.as_deref(), Some("k"));
        assert_eq!(call.generation(2).key.as_deref(), Some("k:2"));
    }
}
