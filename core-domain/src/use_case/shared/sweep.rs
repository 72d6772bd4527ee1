//! Removes expired records in bounded slices.

use crate::access::unowned;
use crate::kernel::{Record, Result, Timestamp, Unowned};
use crate::port::{Persisted, UnitOfWork};

/// Number of records that one unit removes, so that it does not hold up others for long. Records that expire at the same
/// instant as the last one are removed with it.
const SLICE: u32 = 1_000;

/// Removes the records that expired first. Returns their number; 0 means that no expired record is left.
///
/// The query must return the records that have expired at an instant, the first to expire first.
pub(in crate::use_case) async fn remove_expired_slice<R>(
    uow: &mut dyn UnitOfWork,
    now: Timestamp,
    expired_at: impl Fn(Timestamp) -> R::Query,
    expires_at: impl Fn(&R) -> Timestamp,
) -> Result<u64>
where
    R: Persisted + Record<Owner = Unowned>,
{
    let slice = unowned::<R>(uow).list(&expired_at(now), SLICE).await?;
    let Some(last) = slice.last() else {
        return Ok(0);
    };
    let slice = expired_at(expires_at(last));
    unowned::<R>(uow).remove_all(&slice).await
}
