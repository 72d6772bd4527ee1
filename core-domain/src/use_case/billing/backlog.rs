//! The backlog of billing, for metrics.

use std::time::Duration;

use super::clock::BillingClock;
use super::due;
use crate::kernel::Result;
use crate::port::UnitOfWork;

/// Returns for how long the oldest change by time has been due, such as a renewal or a charge; zero if nothing is due.
/// Reads the first record of each kind.
///
/// # Errors
/// Only those of the store.
pub async fn overdue(uow: &mut dyn UnitOfWork, clock: BillingClock) -> Result<Duration> {
    let now = clock.now(uow).await?;
    let due = due::list(uow, None, now, 1).await?;
    let ages = due.iter().map(|due| now.since(due.at));
    Ok(ages.max().unwrap_or_default())
}
