//! The person's side: they enter the code of a device and decide about it.

use super::grant::GrantRefusal;
use crate::access::{Batches, Covers, PersonScope, SessionScope, audited, unowned};
use crate::iam::{
    DeviceAuthorization, DeviceAuthorizationQuery, DeviceDecision, DeviceEvent, DeviceStatus,
    Session, User, UserCode,
};
use crate::kernel::{
    Code, Context, DeviceAuthorizationId, Error, Machine, Record, Result, Stored, Unowned, UserId,
};
use crate::port::UnitOfWork;

/// The largest number of approved devices in a list. An approval lasts 10 minutes at most.
const MAX_LISTED: u32 = 100;

/// Lets the device with this code sign in for the person of the session, or refuses it. Deciding the same twice is fine.
///
/// # Errors
/// `NOT_FOUND` for an unknown code, `expired_token` for one that is over; `INVALID_STATE` when something else was decided;
/// `access_denied` for somebody who is kept out; `FORBIDDEN` for the session of a program: a copied access token shall not let its thief sign in for good.
pub async fn decide(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    code: &UserCode,
    decision: DeviceDecision,
) -> Result<()> {
    let (session, device) = asked(scope, uow, code).await?;
    let event = DeviceEvent::from(decision);
    let moves = event.of_event();
    if device.status == moves.to && device.user_id.as_ref() == Some(&session.user_id) {
        return Ok(());
    }
    let mut next = device.edit();
    next.status = event.next(device.status)?;
    next.user_id = Some(session.user_id.clone());
    next.organization_id = session.active_organization_id.clone();
    let cx = &cx.consequence();
    audited::replace(cx, scope, uow, &device, next, moves.action).await?;
    Ok(())
}

/// The device with this code that waits for a decision, for whoever is about to take it.
///
/// # Errors
/// As [`decide`]; `NOT_FOUND` too when it was decided already.
pub async fn pending(
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    code: &UserCode,
) -> Result<Stored<DeviceAuthorization>> {
    let (_, device) = asked(scope, uow, code).await?;
    if device.status != DeviceStatus::Pending {
        return Err(Error::NotFound(DeviceAuthorization::KIND));
    }
    Ok(device)
}

/// Takes back what a user has approved and no device has tokens for yet.
pub(in crate::use_case::iam) async fn revoke_approvals(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
) -> Result<()> {
    let approved = DeviceAuthorizationQuery::ApprovedBy(user.clone());
    let mut devices = Batches::<DeviceAuthorization>::of(approved);
    while let Some(batch) = devices.next(unowned(uow)).await? {
        for device in batch {
            revoke(cx, scope, uow, &device).await?;
        }
    }
    Ok(())
}

async fn revoke(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    device: &Stored<DeviceAuthorization>,
) -> Result<()> {
    let event = DeviceEvent::Revoke;
    let mut next = device.edit();
    next.status = event.next(device.status)?;
    let action = event.of_event().action;
    audited::replace(cx, scope, uow, device, next, action).await?;
    Ok(())
}

/// Returns the devices that the person approved and that can still get their first tokens, at most 100.
///
/// # Errors
/// When the store failed.
pub async fn list_approved(
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<DeviceAuthorization>>> {
    let approved = DeviceAuthorizationQuery::ApprovedBy(scope.user_id().clone());
    let mut devices = unowned::<DeviceAuthorization>(uow)
        .list(&approved, MAX_LISTED)
        .await?;
    let now = uow.now().await?;
    devices.retain(|device| !device.is_expired(now));
    Ok(devices)
}

/// Takes the person's approval of a device back, before it has tokens.
///
/// # Errors
/// `NOT_FOUND` for a device that the person did not approve, or that has its tokens.
pub async fn revoke_approval(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    id: &DeviceAuthorizationId,
) -> Result<()> {
    let device = unowned::<DeviceAuthorization>(uow).get(id).await?;
    let is_approved = device.status == DeviceStatus::Approved;
    if !is_approved || device.user_id.as_ref() != Some(scope.user_id()) {
        return Err(Error::NotFound(DeviceAuthorization::KIND));
    }
    revoke(cx, scope, uow, &device).await
}

/// The session of the person who decides, and the device with the code.
async fn asked(
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    code: &UserCode,
) -> Result<(Stored<Session>, Stored<DeviceAuthorization>)> {
    let session = unowned::<Session>(uow).find(scope.session_id()).await?;
    let session = session.ok_or(Error::Unauthorized)?;
    if session.client_id.is_some() {
        return Err(Error::Forbidden);
    }
    let user = unowned::<User>(uow).find(&session.user_id).await?;
    if user.is_none_or(|user| user.banned_at.is_some()) {
        return Err(GrantRefusal::AccessDenied.into());
    }
    let with_code = DeviceAuthorizationQuery::WithUserCode(code.clone());
    let device = unowned::<DeviceAuthorization>(uow)
        .first(&with_code)
        .await?;
    let device = device.ok_or(Error::NotFound(DeviceAuthorization::KIND))?;
    if device.is_expired(uow.now().await?) {
        return Err(Error::refused(Code::ExpiredToken, "The code is over."));
    }
    Ok((session, device))
}
