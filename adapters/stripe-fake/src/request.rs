//! A completely received request.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::{HeaderMap, Method};
use percent_encoding::percent_decode_str;

use crate::envelope::Refusal;
use crate::params::Params;

/// A request with its complete body.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// The path as sent, without the query.
    pub(crate) path: String,
    /// The percent-decoded segments of the path.
    pub(crate) segments: Vec<String>,
    /// The query as sent.
    pub(crate) query: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Request {
    pub(crate) fn new(head: &http::request::Parts, body: Bytes) -> Self {
        let path = head.uri.path();
        let decoded = |segment: &str| percent_decode_str(segment).decode_utf8_lossy().into_owned();
        Self {
            method: head.method.clone(),
            path: path.to_owned(),
            segments: path.split('/').skip(1).map(decoded).collect(),
            query: head.uri.query().unwrap_or_default().to_owned(),
            headers: head.headers.clone(),
            body,
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Returns the secret key of the request: a bearer token, or the user name of basic authentication.
    pub(crate) fn key(&self) -> Option<String> {
        let header = self.header("authorization")?;
        if let Some(key) = header.strip_prefix("Bearer ") {
            return Some(key.to_owned());
        }
        let user = STANDARD.decode(header.strip_prefix("Basic ")?).ok()?;
        let user = String::from_utf8(user).ok()?;
        Some(user.trim_end_matches(':').to_owned())
    }

    pub(crate) fn idempotency_key(&self) -> Option<&str> {
        let key = self.header("idempotency-key");
        key.filter(|_| self.method == Method::POST)
    }

    /// Decodes the parameters: the form of a POST, the query of others.
    pub(crate) fn params(&self) -> Result<Params, Refusal> {
        if self.method != Method::POST {
            return Params::decode(self.query.as_bytes());
        }
        let kind = self.header("content-type").unwrap_or_default();
        let is_form = kind.starts_with("application/x-www-form-urlencoded");
        if !is_form && !self.body.is_empty() {
            let message = "Request bodies must be application/x-www-form-urlencoded.";
            return Err(Refusal::state(message).not_kept());
        }
        if !self.query.is_empty() {
            let message = "The parameters of a POST belong into its body.";
            return Err(Refusal::state(message).not_kept());
        }
        Params::decode(&self.body)
    }

    /// Returns the endpoint: the method and the path, in which an id is replaced.
    pub(crate) fn endpoint(&self) -> String {
        let segments = self.segments.iter().enumerate();
        let segments = segments.map(|(index, segment)| {
            let is_id = index == 2 && segment != "sessions";
            if is_id { "{id}" } else { segment }
        });
        format!(
            "{} /{}",
            self.method,
            segments.collect::<Vec<_>>().join("/")
        )
    }
}
