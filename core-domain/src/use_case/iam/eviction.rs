//! Eviction of records whose number per user is limited.

use crate::access::unaudited;
use crate::kernel::{Result, Stored};
use crate::port::{Persisted, UnitOfWork};

/// Removes the expired records, then the oldest others until fewer than `most` are left, so that one more can be
/// inserted.
///
/// # Errors
/// `CONFLICT` if a concurrent unit changed one of the records.
pub(super) async fn evict<R: Persisted>(
    uow: &mut dyn UnitOfWork,
    oldest_first: &[Stored<R>],
    max: u32,
    expired: impl Fn(&R) -> bool,
) -> Result<()> {
    let (expired, others): (Vec<_>, Vec<_>) =
        oldest_first.iter().partition(|record| expired(record));
    let kept = usize::try_from(max).unwrap_or(usize::MAX).saturating_sub(1);
    let too_many = others.len().saturating_sub(kept);
    for record in expired.into_iter().chain(others.into_iter().take(too_many)) {
        unaudited::remove(uow, record).await?;
    }
    Ok(())
}
