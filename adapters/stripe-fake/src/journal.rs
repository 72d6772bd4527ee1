//! The record of requests and responses.

use bytes::Bytes;

/// A received request, without confidential data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedRequest {
    /// The HTTP method of the request.
    pub method: String,
    /// The path of the request, without the query.
    pub path: String,
    /// The idempotency key; `None` if there is none.
    pub idempotency_key: Option<String>,
    /// The status of the response; `None` if no response was sent.
    pub status: Option<u16>,
}

/// A complete request with its response. Recorded if [`crate::Settings::record_exchanges`] is set.
#[derive(Clone)]
pub struct Exchange {
    /// The method, path and status.
    pub recorded: RecordedRequest,
    /// The query of the request, as sent.
    pub query: String,
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

impl std::fmt::Debug for Exchange {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = formatter.debug_struct("Exchange");
        shown
            .field("recorded", &self.recorded)
            .finish_non_exhaustive()
    }
}

/// The recorded requests and exchanges.
#[derive(Default)]
pub(crate) struct Journal {
    pub(crate) requests: Vec<RecordedRequest>,
    pub(crate) exchanges: Vec<Exchange>,
}
