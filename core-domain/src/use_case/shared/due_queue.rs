//! The queue logic that outbox messages, mails and messages to webhooks share.
//!
//! A due record is claimed for a limited time and handed over. Then it is removed, rescheduled or released. A claim
//! lasts twice as long as an attempt may take, so only one process at a time hands a record over. The claims of a
//! crashed process expire, and its records become due again. Every write checks the version that was claimed.

use std::time::Duration;

use crate::access::{unaudited, unowned_records};
use crate::kernel::{Entropy, Error, Record, Result, StoreError, Stored, Timestamp, Unowned};
use crate::port::{Mode, Persisted, Store, UnitOfWork, transact_in};
use crate::provisioning::retry_at;

/// Returns the duration of a claim for this maximum duration of an attempt.
#[must_use]
pub const fn claim_duration(longest_attempt: Duration) -> Duration {
    longest_attempt.saturating_mul(2)
}

/// A record in a queue of due records.
pub(super) trait DueRecord: Persisted + Record<Owner = Unowned> {
    /// Maximum duration of one attempt.
    const MAX_ATTEMPT_TIME: Duration;

    /// Returns the number of attempts, including one in progress.
    fn attempts(&self) -> i64;

    /// Returns the record with this number of attempts and this due time.
    fn with_schedule(&self, attempts: i64, due_at: Timestamp, now: Timestamp) -> Self;

    /// Returns the record as claimed: with one more attempt, and not due for other processes until the claim expires.
    fn with_claim(&self, now: Timestamp) -> Self {
        let expires_at = now.plus(claim_duration(Self::MAX_ATTEMPT_TIME));
        self.with_schedule(self.attempts() + 1, expires_at, now)
    }
}

/// A claimed record, as stored with the claim.
#[derive(Clone, Debug)]
pub(super) struct Claimed<R> {
    pub(super) stored: Stored<R>,
    pub(super) claimed_at: Timestamp,
}

/// Returns whether any record is due. Writes nothing.
pub(super) async fn is_any_due<R: DueRecord>(
    store: &dyn Store,
    due_at: impl Fn(Timestamp) -> R::Query,
) -> Result<bool> {
    let mut uow = store.begin(Mode::Auto).await?;
    let due = due_at(uow.now().await?);
    let first = unowned_records::<R>(uow.as_mut()).first(&due).await?;
    Ok(first.is_some())
}

/// Claims at most `limit` due records, longest due first.
pub(super) async fn claim<R: DueRecord>(
    store: &dyn Store,
    limit: u32,
    due_at: fn(Timestamp) -> R::Query,
) -> Result<Vec<Claimed<R>>> {
    if limit == 0 || !is_any_due::<R>(store, due_at).await? {
        return Ok(Vec::new());
    }
    transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            let claimed_at = uow.now().await?;
            let due = unowned_records::<R>(uow)
                .claim(&due_at(claimed_at), limit)
                .await?;
            let claimed = due.into_iter().map(|seen| {
                let next = seen.with_claim(claimed_at);
                (seen, next)
            });
            let claimed = unaudited::replace_many(uow, claimed.collect()).await?;
            let of = |stored| Claimed { stored, claimed_at };
            Ok(claimed.into_iter().map(of).collect())
        })
    })
    .await
}

/// Reschedules a claimed record after a delay that grows to five minutes. Does nothing if another process has claimed
/// it since.
pub(super) async fn reschedule<R: DueRecord>(
    uow: &mut dyn UnitOfWork,
    claimed: &Stored<R>,
    entropy: &dyn Entropy,
) -> Result<()> {
    let (now, attempts) = (uow.now().await?, claimed.attempts());
    let due_at = retry_at(now, attempts, Duration::ZERO, entropy);
    let next = claimed.with_schedule(attempts, due_at, now);
    write_back(uow, claimed, next).await.map(drop)
}

/// Makes a claimed record due immediately and does not count the attempt. Does nothing if another process has claimed
/// it since.
pub(super) async fn release<R: DueRecord>(
    uow: &mut dyn UnitOfWork,
    claimed: &Stored<R>,
) -> Result<()> {
    let now = uow.now().await?;
    let next = claimed.with_schedule(claimed.attempts() - 1, now, now);
    write_back(uow, claimed, next).await.map(drop)
}

/// Writes a claimed record. Returns whether this process still had the claim.
pub(super) async fn write_back<R: DueRecord>(
    uow: &mut dyn UnitOfWork,
    claimed: &Stored<R>,
    next: R,
) -> Result<bool> {
    match unaudited::replace(uow, claimed, next).await {
        Err(Error::Store(StoreError::Stale { .. })) => Ok(false),
        replaced => replaced.map(|_| true),
    }
}
