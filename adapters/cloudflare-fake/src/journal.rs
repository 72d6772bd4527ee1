//! What was asked and answered.

use bytes::Bytes;

/// A request that came, without anything secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its method.
    pub method: String,
    /// Its path, without the query.
    pub path: String,
    /// The status it was answered with; none when no answer was sent.
    pub status: Option<u16>,
}

/// A request with its answer as a whole; recorded when [`crate::Settings::record_exchanges`] asks for it.
#[derive(Clone)]
pub struct Exchange {
    /// Method, path and status.
    pub recorded: Recorded,
    /// The parameters of its query, decoded.
    pub query: Vec<(String, String)>,
    /// Whether the answer is what a fault made of it.
    pub is_fault: bool,
    /// The content type of its body.
    pub request_type: Option<String>,
    /// Its body, which may hold secrets.
    pub request: Bytes,
    /// The content type of the answer.
    pub response_type: String,
    /// The body of the answer, which may hold upload tokens.
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

/// The journal.
#[derive(Default)]
pub(crate) struct Journal {
    pub(crate) requests: Vec<Recorded>,
    pub(crate) exchanges: Vec<Exchange>,
}
