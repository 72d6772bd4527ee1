//! Idempotency keys: the stored answer of a write, committed with the write itself.

use std::time::Duration;

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::{count, few};
use crate::kernel::{Timestamp, record};

/// How long a stored answer counts.
pub const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// The answer to a write that carried an `Idempotency-Key`.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct IdempotencyKey {
    /// Hash of the caller (kind and id), the service and the client's key.
    #[cfg_attr(any(test, feature = "proptest"), proptest(regex = "[0-9a-f]{64}"))]
    pub id: String,
    /// Hash of method, documented path, query and body: another request under the same key is refused.
    pub request_hash: String,
    /// Status of the stored answer.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub status: i64,
    /// Headers of the stored answer, in order: name and value.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub headers: Vec<(String, String)>,
    /// Body of the stored answer; encrypted when it holds a secret.
    pub body: String,
    /// Whether the request asked for a fresh proof of the caller. A replay asks for one too.
    pub needs_proof: bool,
    /// When the answer was stored.
    pub created_at: Timestamp,
    /// From when on the key counts as new.
    pub expires_at: Timestamp,
}

record! {
    IdempotencyKey as "idempotency key" by id, asked IdempotencyQuery;
}

/// Questions about idempotency keys.
#[derive(Clone, Debug, PartialEq)]
pub enum IdempotencyQuery {
    /// Those that expired before this instant.
    ExpiredBefore(Timestamp),
}
