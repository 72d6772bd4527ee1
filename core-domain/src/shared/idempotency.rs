//! Idempotency keys: the stored answer of a write, committed with the write itself.

use std::time::Duration;

use crate::kernel::{Result, Timestamp};
use crate::port::{Record, UnitOfWork};

/// How long a stored answer counts.
pub const KEPT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// The answer to a write that carried an `Idempotency-Key`.
#[derive(Clone, Debug, PartialEq)]
pub struct IdempotencyKey {
    /// Hash of caller, method, path and the client's key: what the answer is stored under.
    pub id: String,
    /// Hash of the request's body: another body under the same key is refused.
    pub request_hash: String,
    /// Status of the stored answer.
    pub status: i64,
    /// Body of the stored answer.
    pub body: String,
    /// When the answer was stored.
    pub created_at: Timestamp,
    /// From when on the key counts as new.
    pub expires_at: Timestamp,
}

impl Record for IdempotencyKey {
    type Query = IdempotencyQuery;
    const KIND: &'static str = "idempotency key";

    fn key(&self) -> &str {
        &self.id
    }
}

/// Questions about idempotency keys.
#[derive(Clone, Debug, PartialEq)]
pub enum IdempotencyQuery {
    /// Those that expired before this instant.
    ExpiredBefore(Timestamp),
}

/// Removes the answers whose time is over; tells how many.
///
/// # Errors
/// When the store failed.
pub async fn forget_expired_keys(uow: &mut dyn UnitOfWork) -> Result<u64> {
    let expired = IdempotencyQuery::ExpiredBefore(uow.now().await?);
    Ok(uow.idempotency_keys().remove_all(&expired).await?)
}
