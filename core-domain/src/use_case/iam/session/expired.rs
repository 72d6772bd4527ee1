//! Removing the sessions of people who do not come back.

use crate::iam::{Session, SessionQuery};
use crate::kernel::Result;
use crate::port::UnitOfWork;
use crate::use_case::shared::remove_first;

/// Removes at most `limit` of the sessions that have expired, the first to expire first. Returns
/// their number; 0 means that none is left.
///
/// # Errors
/// When the store failed.
pub async fn remove_expired(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let now = uow.now().await?;
    remove_first::<Session>(uow, &SessionQuery::ExpiredAt(now), limit).await
}
