//! A completely received request.

use bytes::Bytes;
use http::{HeaderMap, Method};
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

use crate::envelope::Refusal;
use crate::multipart::{self, Part};

/// A request with its complete body.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// The path as sent, without the query.
    pub(crate) path: String,
    /// The percent-decoded segments of the path.
    pub(crate) segments: Vec<String>,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Request {
    pub(crate) fn new(head: &http::request::Parts, body: Bytes) -> Self {
        let path = head.uri.path();
        let decoded = |segment: &str| percent_decode_str(segment).decode_utf8_lossy().into_owned();
        let query = head.uri.query().unwrap_or_default();
        Self {
            method: head.method.clone(),
            path: path.to_owned(),
            segments: path.split('/').skip(1).map(decoded).collect(),
            query: serde_urlencoded::from_str(query).unwrap_or_default(),
            headers: head.headers.clone(),
            body,
        }
    }

    /// Returns a parameter of the query.
    pub(crate) fn param(&self, name: &str) -> Option<&str> {
        let mut named = self.query.iter().filter(|(key, _)| key == name);
        named.next().map(|(_, value)| value.as_str())
    }

    /// Returns whether a parameter is present and true.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.param(name) == Some("true")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the bearer token of the request.
    pub(crate) fn bearer(&self) -> Option<&str> {
        self.header("authorization")?.strip_prefix("Bearer ")
    }

    /// Parses the body as JSON, regardless of its content type. Refuses an invalid body with the product's error code.
    pub(crate) fn json<T: DeserializeOwned>(&self, code: u32) -> Result<T, Refusal> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Refusal::with(400, code, format!("invalid request body: {error}")))
    }

    /// Parses the body as a form. Refuses an invalid body with the product's error code.
    pub(crate) fn form(&self, code: u32) -> Result<Vec<Part>, Refusal> {
        multipart::parse(self.header("content-type"), &self.body)
            .map_err(|why| Refusal::new(400, code, why))
    }
}
