//! The record of requests and responses.

use core_fake_kit::journal;

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

/// A complete request with its response, and the query as sent. Recorded if [`crate::Settings::record_exchanges`] is set.
pub type Exchange = journal::Exchange<RecordedRequest, String>;

/// The recorded requests and exchanges.
pub(crate) type Journal = journal::Journal<RecordedRequest, String>;
