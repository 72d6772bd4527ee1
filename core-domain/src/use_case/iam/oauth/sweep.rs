//! Removes expired tokens and device codes.

use std::time::Duration;

use crate::iam::{
    AccessToken, AccessTokenQuery, DeviceAuthorization, DeviceAuthorizationQuery, RefreshToken,
    RefreshTokenQuery,
};
use crate::kernel::Result;
use crate::port::UnitOfWork;
use crate::use_case::shared::remove_expired_slice;

/// How long a device that polls too late still gets `expired_token`, after its codes have expired.
const DEVICE_RETENTION: Duration = Duration::from_secs(60 * 60);

/// Removes a slice of the tokens that have expired, the first to expire first. Returns their number; 0 means that none is left.
///
/// # Errors
/// When the store failed.
pub async fn remove_expired_tokens(uow: &mut dyn UnitOfWork) -> Result<u64> {
    let now = uow.now().await?;
    let access = remove_expired_slice(
        uow,
        now,
        AccessTokenQuery::ExpiredAt,
        |token: &AccessToken| token.expires_at,
    );
    let access = access.await?;
    let refresh = remove_expired_slice(
        uow,
        now,
        RefreshTokenQuery::ExpiredAt,
        |token: &RefreshToken| token.expires_at,
    );
    Ok(access + refresh.await?)
}

/// Removes a slice of the devices whose codes expired more than an hour ago, the first to expire first. Returns their number;
/// 0 means that none is left.
///
/// # Errors
/// When the store failed.
pub async fn remove_expired_devices(uow: &mut dyn UnitOfWork) -> Result<u64> {
    let now = uow.now().await?.minus(DEVICE_RETENTION);
    remove_expired_slice(
        uow,
        now,
        DeviceAuthorizationQuery::ExpiredAt,
        |device: &DeviceAuthorization| device.expires_at,
    )
    .await
}
