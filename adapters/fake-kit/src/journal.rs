//! The record of requests and responses.

use bytes::Bytes;

/// A complete request with its response. `R` is the request without confidential data, and `Q` is the query.
#[derive(Clone)]
pub struct Exchange<R, Q> {
    /// The method, path and status.
    pub recorded: R,
    /// The query of the request.
    pub query: Q,
    /// `true` if a fault caused the response.
    pub is_fault: bool,
    /// The content type of the request body.
    pub request_type: Option<String>,
    /// The request body, which may contain secrets.
    pub request: Bytes,
    /// The content type of the response.
    pub response_type: String,
    /// The response body, which may contain secrets.
    pub response: Bytes,
}

impl<R: std::fmt::Debug, Q> std::fmt::Debug for Exchange<R, Q> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Exchange");
        shown
            .field("recorded", &self.recorded)
            .finish_non_exhaustive()
    }
}

/// The recorded requests and exchanges, in order.
#[derive(Debug)]
pub struct Journal<R, Q> {
    /// The received requests, without confidential data.
    pub requests: Vec<R>,
    /// The complete requests and responses, if the settings of the fake ask for them.
    pub exchanges: Vec<Exchange<R, Q>>,
}

impl<R, Q> Default for Journal<R, Q> {
    fn default() -> Self {
        Self {
            requests: Vec::new(),
            exchanges: Vec::new(),
        }
    }
}
