//! Devices on which the password signs in without the second factor.

use serde_json::json;

use super::super::eviction::evict;
use super::begin::as_user;
use crate::access::{AuditEvent, PersonScope, audited, unaudited, unowned};
use crate::iam::{
    MAX_TRUSTED_DEVICES, TRUSTED_FOR, TokenHash, TrustedDevice, TrustedDeviceQuery, User,
};
use crate::kernel::{
    Context, Error, Record, Result, Stored, TOKEN_LENGTH, Timestamp, UserId, secret_token,
};
use crate::port::UnitOfWork;
use crate::use_case::shared::remove_first;

/// Trusts the device of somebody who has just shown their second factor. Answers its token, which is never shown again.
pub(in crate::use_case::iam) async fn trust_device(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    user: &User,
) -> Result<String> {
    evict_devices(uow, user).await?;
    let now = uow.now().await?;
    let token = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let device = TrustedDevice {
        token_hash: TokenHash::of(&token),
        user_id: user.id.clone(),
        ip_address: cx.request.ip.clone(),
        user_agent: cx.request.user_agent.clone(),
        created_at: now,
        expires_at: now.plus(TRUSTED_FOR),
    };
    unaudited::insert(uow, device).await?;
    let event = AuditEvent {
        action: "two_factor.device_trusted",
        entity_id: user.id.to_string(),
        ..AuditEvent::default()
    };
    audited::event(&as_user(cx, user), uow, event).await?;
    Ok(token)
}

/// Keeps the devices of a user bounded.
async fn evict_devices(uow: &mut dyn UnitOfWork, user: &User) -> Result<()> {
    let of_user = TrustedDeviceQuery::OfUser(user.id.clone());
    let devices = unowned::<TrustedDevice>(uow);
    let devices = devices.list(&of_user, 2 * MAX_TRUSTED_DEVICES).await?;
    let now = uow.now().await?;
    evict(uow, &devices, MAX_TRUSTED_DEVICES, |device| {
        now >= device.expires_at
    })
    .await
}

/// The next token of a device that the user trusts; `None` for one that they do not, or not any more. A token is good for one
/// sign-in.
pub(super) async fn use_trust(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    user: &User,
    token: &str,
) -> Result<Option<String>> {
    let hash = TokenHash::of(token);
    let now = uow.now().await?;
    let found = unowned::<TrustedDevice>(uow).find(&hash).await?;
    let found = found.filter(|found| found.user_id == user.id && now < found.expires_at);
    let Some(seen) = found else {
        return Ok(None);
    };
    let token = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let next = TrustedDevice {
        token_hash: TokenHash::of(&token),
        expires_at: now.plus(TRUSTED_FOR),
        ..(*seen).clone()
    };
    unaudited::remove(uow, &seen).await?;
    unaudited::insert(uow, next).await?;
    Ok(Some(token))
}

/// Returns the devices that the person trusts, newest first; there are never more than [`MAX_TRUSTED_DEVICES`].
///
/// # Errors
/// When the store failed.
pub async fn list_trusted_devices(
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<TrustedDevice>>> {
    let of_user = TrustedDeviceQuery::OfUser(scope.user_id().clone());
    let devices = unowned::<TrustedDevice>(uow);
    let mut devices = devices.list(&of_user, 2 * MAX_TRUSTED_DEVICES).await?;
    let now = uow.now().await?;
    devices.retain(|device| now < device.expires_at);
    devices.reverse();
    Ok(devices)
}

/// Ends the person's trust in the device that became trusted at this time.
///
/// # Errors
/// `NOT_FOUND` when there is none.
pub async fn distrust_device(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    since: Timestamp,
) -> Result<()> {
    let devices = list_trusted_devices(scope, uow).await?;
    let device = devices.iter().find(|device| device.created_at == since);
    let device = device.ok_or(Error::NotFound(TrustedDevice::KIND))?;
    unaudited::remove(uow, device).await?;
    let event = AuditEvent {
        action: "two_factor.device_distrusted",
        entity_id: scope.user_id().to_string(),
        details: Some(json!({ "since": since, "ipAddress": device.ip_address })),
        ..AuditEvent::default()
    };
    audited::event(cx, uow, event).await
}

/// Trusts no device of the user any more; the entry is that of what it is a part of.
pub(in crate::use_case::iam) async fn trust_no_device(
    uow: &mut dyn UnitOfWork,
    user: &UserId,
) -> Result<()> {
    let of_user = TrustedDeviceQuery::OfUser(user.clone());
    unowned::<TrustedDevice>(uow).remove_all(&of_user).await?;
    Ok(())
}

/// Removes at most `limit` of the trusted devices that have expired, the first to expire first. Returns
/// their number; 0 means that none is left.
///
/// # Errors
/// When the store failed.
pub async fn remove_expired_trust(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let now = uow.now().await?;
    remove_first::<TrustedDevice>(uow, &TrustedDeviceQuery::ExpiredAt(now), limit).await
}
