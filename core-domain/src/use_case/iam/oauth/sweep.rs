//! Removing what time has made useless.

use std::time::Duration;

use crate::access::unowned;
use crate::iam::{
    AccessToken, AccessTokenQuery, DeviceAuthorization, DeviceAuthorizationQuery, RefreshToken,
    RefreshTokenQuery,
};
use crate::kernel::Result;
use crate::port::UnitOfWork;

/// How long a device that asks too late is still told that its codes are over.
const DEVICES_REMEMBERED: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes tokens that have expired and devices that nobody waits for; tells how many.
///
/// # Errors
/// When the store failed.
pub async fn remove_expired(uow: &mut dyn UnitOfWork) -> Result<u64> {
    let now = uow.now().await?;
    let access = AccessTokenQuery::ExpiredAt(now);
    let refresh = RefreshTokenQuery::ExpiredAt(now);
    let devices = DeviceAuthorizationQuery::ExpiredAt(now.minus(DEVICES_REMEMBERED));
    let removed = [
        unowned::<AccessToken>(uow).remove_all(&access).await?,
        unowned::<RefreshToken>(uow).remove_all(&refresh).await?,
        unowned::<DeviceAuthorization>(uow)
            .remove_all(&devices)
            .await?,
    ];
    Ok(removed.iter().sum())
}
