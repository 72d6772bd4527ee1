//! Removes expired tokens and device codes.

use std::time::Duration;

use crate::iam::{
    AccessToken, AccessTokenQuery, DeviceAuthorization, DeviceAuthorizationQuery, RefreshToken,
    RefreshTokenQuery,
};
use crate::kernel::Result;
use crate::port::UnitOfWork;
use crate::use_case::shared::remove_first;

/// How long a device that polls too late still gets `expired_token`, after its codes have expired.
const DEVICE_RETENTION: Duration = Duration::from_secs(60 * 60);

/// Removes at most `limit` of the tokens that have expired, the first to expire first. Returns
/// their number; 0 means that none is left.
///
/// # Errors
/// When the store failed.
pub async fn remove_expired_tokens(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let now = uow.now().await?;
    let access = AccessTokenQuery::ExpiredAt(now);
    let access = remove_first::<AccessToken>(uow, &access, limit).await?;
    let rest = limit.saturating_sub(u32::try_from(access).unwrap_or(limit));
    if rest == 0 {
        return Ok(access);
    }
    let refresh = RefreshTokenQuery::ExpiredAt(now);
    Ok(access + remove_first::<RefreshToken>(uow, &refresh, rest).await?)
}

/// Removes at most `limit` of the devices whose codes expired more than an hour ago, the first to expire first. Returns
/// their number; 0 means that none is left.
///
/// # Errors
/// When the store failed.
pub async fn remove_expired_devices(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let now = uow.now().await?.minus(DEVICE_RETENTION);
    remove_first::<DeviceAuthorization>(uow, &DeviceAuthorizationQuery::ExpiredAt(now), limit).await
}
