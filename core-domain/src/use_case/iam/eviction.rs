//! Keeping bounded what anybody can make more of.

use crate::access::unaudited;
use crate::kernel::{Result, Stored};
use crate::port::{Persisted, UnitOfWork};

/// Removes the expired, and the oldest of the others that leave no place for one more among `most`.
///
/// # Errors
/// When the store failed, or somebody changed one of them in between.
pub(super) async fn evict<R: Persisted>(
    uow: &mut dyn UnitOfWork,
    oldest_first: &[Stored<R>],
    most: u32,
    expired: impl Fn(&R) -> bool,
) -> Result<()> {
    let (expired, others): (Vec<_>, Vec<_>) =
        oldest_first.iter().partition(|record| expired(record));
    let kept = usize::try_from(most)
        .unwrap_or(usize::MAX)
        .saturating_sub(1);
    let too_many = others.len().saturating_sub(kept);
    for record in expired.into_iter().chain(others.into_iter().take(too_many)) {
        unaudited::remove(uow, record).await?;
    }
    Ok(())
}
