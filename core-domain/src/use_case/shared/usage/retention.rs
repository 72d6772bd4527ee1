//! Removing old events. Their sums are kept.

use std::time::Duration;

use super::super::sweep::remove_first;
use crate::billing::usage::{UsageEvent, UsageEventQuery};
use crate::kernel::Result;
use crate::port::UnitOfWork;

/// How long events are kept. Their ids are needed for 36 days: an older event is rejected by its time.
const RETENTION: Duration = Duration::from_secs(100 * 24 * 60 * 60);

/// Removes at most `limit` events that were stored more than 100 days ago, oldest first. Returns the number of removed
/// events; 0 means that none is left. The sums of the events are kept.
///
/// # Errors
/// Only those of the store.
pub async fn remove_old_events(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let old = UsageEventQuery::ReceivedBefore(uow.now().await?.minus(RETENTION));
    remove_first::<UsageEvent>(uow, &old, limit).await
}
