//! Removing old events. Their sums are kept.

use std::time::Duration;

use super::super::sweep::remove_first;
use crate::billing::usage::{UsageEvent, UsageEventQuery};
use crate::kernel::Result;
use crate::port::UnitOfWork;

/// How long events are kept at least: an event of 35 days is still accepted, and its id must be known by then. An older event
/// is rejected by its time.
pub const MIN_EVENT_RETENTION: Duration = Duration::from_secs(36 * 24 * 60 * 60);

/// Removes at most `limit` events that were stored longer ago than `retention`, oldest first. Returns the number of removed
/// events; 0 means that none is left. The sums of the events are kept.
///
/// # Errors
/// Only those of the store.
pub async fn remove_old_events(
    uow: &mut dyn UnitOfWork,
    retention: Duration,
    limit: u32,
) -> Result<u64> {
    let old = UsageEventQuery::ReceivedBefore(uow.now().await?.minus(retention));
    remove_first::<UsageEvent>(uow, &old, limit).await
}
