//! Idempotency keys. The response to a write is stored in the unit of work of the write itself.

use std::time::Duration;

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::{count, few};
use crate::kernel::{Timestamp, record};

/// Time after which a stored response expires.
pub const RESPONSE_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The stored response to a request with an `Idempotency-Key`, or the work that the first part of its handler has left for the second
/// one, see [`StoredResponse::status`].
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct StoredResponse {
    /// Hash of the caller (type and id), the service and the client's key.
    #[cfg_attr(any(test, feature = "proptest"), proptest(regex = "[0-9a-f]{64}"))]
    pub id: String,
    /// Hash of the method, documented path, query and body. A different request with the same key is refused.
    pub request_hash: String,
    /// HTTP status of the stored response. While there is none, [`StoredResponse::WORK_RUNNING`] or
    /// [`StoredResponse::WORK_INTERRUPTED`]; then the body is the work.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub status: i64,
    /// Headers of the stored response, in order, as name and value.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub headers: Vec<(String, String)>,
    /// Body of the stored response. It is encrypted if it contains a secret.
    pub body: String,
    /// Whether the original request required a recent proof of the caller's identity. A replay requires one as well.
    pub needs_proof: bool,
    /// The time at which the response was stored.
    pub created_at: Timestamp,
    /// The time from which the key counts as unused.
    pub expires_at: Timestamp,
}

impl StoredResponse {
    /// The status while the second part of the handler runs.
    pub const WORK_RUNNING: i64 = 0;

    /// The status after the second part of the handler has ended without an outcome. It can be run again.
    pub const WORK_INTERRUPTED: i64 = 1;

    /// Returns whether a status is that of a response, and not of work.
    #[must_use]
    pub const fn is_response(status: i64) -> bool {
        status > Self::WORK_INTERRUPTED
    }
}

record! {
    StoredResponse as "idempotency key" by id, asked IdempotencyQuery;
}

/// Queries for idempotency keys.
#[derive(Clone, Debug, PartialEq)]
pub enum IdempotencyQuery {
    /// The keys that expired before this time, earliest first.
    ExpiredBefore(Timestamp),
}
