//! Removing the sessions of people who do not come back.

use crate::access::unowned;
use crate::iam::{Session, SessionQuery};
use crate::kernel::Result;
use crate::port::UnitOfWork;

/// About how many are removed in one unit, so that none holds others up for long.
const SLICE: u32 = 1_000;

/// Removes some of the sessions that have expired, those that did first; tells how many. None is left when it is none.
///
/// # Errors
/// When the store failed.
pub async fn remove_expired(uow: &mut dyn UnitOfWork) -> Result<u64> {
    let expired = SessionQuery::ExpiredAt(uow.now().await?);
    let slice = unowned::<Session>(uow).list(&expired, SLICE).await?;
    let Some(last) = slice.last() else {
        return Ok(0);
    };
    let slice = SessionQuery::ExpiredAt(last.expires_at);
    unowned::<Session>(uow).remove_all(&slice).await
}
