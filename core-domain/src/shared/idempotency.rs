//! Idempotency keys. The response to a write is stored in the unit of work of the write itself.

use std::time::Duration;

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::{count, few};
use crate::kernel::{Timestamp, record};

/// Time after which a stored response expires.
pub const RESPONSE_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The stored response to a request with an `Idempotency-Key`.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct StoredResponse {
    /// Hash of the caller (type and id), the service and the client's key.
    #[cfg_attr(any(test, feature = "proptest"), proptest(regex = "[0-9a-f]{64}"))]
    pub id: String,
    /// Hash of the method, documented path, query and body. A different request with the same key is refused.
    pub request_hash: String,
    /// HTTP status of the stored response.
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

record! {
    StoredResponse as "idempotency key" by id, asked IdempotencyQuery;
}

/// Queries for idempotency keys.
#[derive(Clone, Debug, PartialEq)]
pub enum IdempotencyQuery {
    /// The keys that expired before this time, earliest first.
    ExpiredBefore(Timestamp),
}
