//! Removing expired records. Each unit of work removes a limited number of records, and only the process that holds the
//! lease does this.

use std::pin::Pin;

use super::maintenance_lease::LeaseHolder;
use crate::access::unowned_records;
use crate::kernel::{Record, Result, Unowned};
use crate::port::{Mode, Persisted, Store, UnitOfWork, transact_in};

/// Maximum number of records that one unit of work removes.
pub const MAX_SLICE: u32 = 1_000;

/// A function that removes at most the given number of expired records of one kind. It returns the number of removed
/// records; 0 means that none is left.
pub type RemoveSlice<'f> = dyn for<'u> Fn(
        &'u mut dyn UnitOfWork,
        u32,
    ) -> Pin<Box<dyn Future<Output = Result<u64>> + Send + 'u>>
    + Sync
    + 'f;

/// The outcome of an attempt to remove a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slice {
    /// This number of records was removed; 0 means that none is left.
    Removed(u64),
    /// Another process holds the lease.
    Busy,
}

/// Removes a slice in a unit of work of its own if this process holds the lease. `on_begin` is called whenever the unit
/// begins, so that a caller with a clock can measure how long the unit is open.
///
/// # Errors
/// Only those of the store.
pub async fn sweep_slice(
    store: &dyn Store,
    holder: &LeaseHolder,
    remove: &RemoveSlice<'_>,
    limit: u32,
    on_begin: &(dyn Fn() + Sync),
) -> Result<Slice> {
    transact_in(Mode::ReadCommitted, store, |uow, _| {
        Box::pin(async move {
            on_begin();
            if !holder.acquire_in(uow).await? {
                return Ok(Slice::Busy);
            }
            remove(uow, limit).await.map(Slice::Removed)
        })
    })
    .await
}

/// Removes the first records that match the query, at most `limit`. Returns the number of removed records.
pub(in crate::use_case) async fn remove_first<R>(
    uow: &mut dyn UnitOfWork,
    query: &R::Query,
    limit: u32,
) -> Result<u64>
where
    R: Persisted + Record<Owner = Unowned>,
{
    let limit = limit.min(MAX_SLICE);
    unowned_records::<R>(uow).remove_first(query, limit).await
}
