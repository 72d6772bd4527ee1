//! Removing the sessions of people who do not come back.

use crate::iam::{Session, SessionQuery};
use crate::kernel::Result;
use crate::port::UnitOfWork;
use crate::use_case::shared::remove_expired_slice;

/// Removes a slice of the sessions that have expired, the first to expire first. Returns their number; 0 means that none is left.
///
/// # Errors
/// When the store failed.
pub async fn remove_expired(uow: &mut dyn UnitOfWork) -> Result<u64> {
    let now = uow.now().await?;
    remove_expired_slice(uow, now, SessionQuery::ExpiredAt, |session: &Session| {
        session.expires_at
    })
    .await
}
