//! Device authorization (RFC 8628): a device requests codes, a person decides about it, and the device exchanges its
//! code for tokens.

use super::token::{TokenOutcome, TokenRefusal, issue};
use crate::access::{
    Batches, Covers, PersonScope, PublicScope, SessionScope, audited, unaudited, unowned_records,
};
use crate::iam::{
    DeviceAuthorization, DeviceAuthorizationQuery, DeviceDecision, DeviceEvent, DevicePoll,
    DeviceStatus, OAuthClient, Session, TokenHash, User, UserCode,
};
use crate::kernel::{
    Code, Context, DeviceAuthorizationId, Error, Machine, Record, Result, StoreError, Stored,
    TOKEN_LENGTH, Unowned, UserId, secret_token,
};
use crate::port::UnitOfWork;
use crate::use_case::iam::session;

/// Maximum number of user codes that are tried until one is free. There are 25 billion codes, so the first is almost
/// always free.
const MAX_CODE_ATTEMPTS: u32 = 5;

/// The codes of a device that wants to sign in.
#[derive(Clone, PartialEq)]
pub struct DeviceCodes {
    /// The secret with which the device polls, which is returned only once.
    pub device_code: String,
    /// The stored authorization, with the user code, the interval and the expiry.
    pub authorization: Stored<DeviceAuthorization>,
}

// The `Debug` output hides the code, so that it does not appear in logs.
impl std::fmt::Debug for DeviceCodes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceCodes")
            .field("authorization", &self.authorization.id)
            .finish_non_exhaustive()
    }
}

/// Creates an authorization and returns its codes.
///
/// # Errors
/// Only those of the store.
pub async fn request(
    cx: &Context,
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    client: OAuthClient,
) -> Result<DeviceCodes> {
    let now = uow.now().await?;
    let device_code = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let mut attempt = 1;
    loop {
        let wanted = DeviceAuthorization {
            id: DeviceAuthorizationId::generate(now, cx.entropy.as_ref()),
            device_code_hash: TokenHash::of(&device_code),
            user_code: UserCode::generate(cx.entropy.as_ref()),
            client_id: client,
            status: DeviceStatus::Pending,
            user_id: None,
            organization_id: None,
            interval: DeviceAuthorization::first_interval(),
            polled_at: None,
            ip_address: cx.request.ip.clone(),
            user_agent: cx.request.user_agent.clone(),
            created_at: now,
            updated_at: now,
            expires_at: DeviceAuthorization::expiry(now),
        };
        // Any program may request codes. The decision of a person is what counts, and it is audited.
        match unaudited::insert(uow, wanted).await {
            Err(Error::Store(StoreError::Conflict { .. })) if attempt < MAX_CODE_ATTEMPTS => {
                attempt += 1
            }
            outcome => {
                return Ok(DeviceCodes {
                    device_code,
                    authorization: outcome?,
                });
            }
        }
    }
}

async fn find(
    uow: &mut dyn UnitOfWork,
    client: OAuthClient,
    device_code: &str,
) -> Result<Option<Stored<DeviceAuthorization>>> {
    let with_code = DeviceAuthorizationQuery::WithDeviceCode(TokenHash::of(device_code));
    let devices = unowned_records::<DeviceAuthorization>(uow);
    let found = devices.first(&with_code).await?;
    Ok(found.filter(|device| device.client_id == client))
}

/// Returns whether a device code of this client is stored. Only reads.
///
/// # Errors
/// Only those of the store.
pub async fn has_device_code(
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    client: OAuthClient,
    device_code: &str,
) -> Result<bool> {
    Ok(find(uow, client, device_code).await?.is_some())
}

/// Answers a poll of a device. After the approval, the first poll returns the tokens and creates a session of the
/// person who approved. The session acts for the organization that the person acted for at the time of the approval.
///
/// # Errors
/// Only those of the store. A refusal is a value, because it is committed.
pub async fn redeem(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    client: OAuthClient,
    device_code: &str,
) -> Result<TokenOutcome> {
    let Some(device) = find(uow, client, device_code).await? else {
        return Ok(Err(TokenRefusal::InvalidGrant));
    };
    let now = uow.now().await?;
    let refusal = match device.poll(now) {
        DevicePoll::Approved => return issue_first_tokens(cx, scope, uow, &device).await,
        DevicePoll::Expired => TokenRefusal::ExpiredToken,
        DevicePoll::Denied => TokenRefusal::AccessDenied,
        DevicePoll::Redeemed => TokenRefusal::InvalidGrant,
        poll => {
            unaudited::replace(uow, &device, device.after_poll(now)).await?;
            match poll {
                DevicePoll::TooFast => TokenRefusal::SlowDown,
                _ => TokenRefusal::AuthorizationPending,
            }
        }
    };
    Ok(Err(refusal))
}

async fn issue_first_tokens(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    device: &Stored<DeviceAuthorization>,
) -> Result<TokenOutcome> {
    let user = match &device.user_id {
        Some(user) => unowned_records::<User>(uow).find(user).await?,
        None => None,
    };
    let Some(user) = user else {
        return Ok(Err(TokenRefusal::InvalidGrant));
    };
    if user.banned_at.is_some() {
        return Ok(Err(TokenRefusal::AccessDenied));
    }
    let (client, organization) = (device.client_id, device.organization_id.clone());
    let session = session::create_for_client(cx, uow, &user, client, organization).await?;
    let mut next = device.edit();
    next.status = DeviceEvent::Redeem.next(device.status)?;
    let action = DeviceEvent::Redeem.transition().action;
    let as_user = session::as_user(cx, &user).without_conditions();
    audited::replace(&as_user, scope, uow, device, next, action).await?;
    Ok(Ok(issue(cx, uow, &session, None).await?))
}

/// Maximum number of approved devices in a list. An approval lasts 10 minutes at most.
const MAX_LISTED: u32 = 100;

/// Approves or refuses the device with this code in the name of the session's user. A repeated equal decision has no
/// effect.
///
/// # Errors
/// - `UNAUTHORIZED` if the session has ended.
/// - `NOT_FOUND` if the code is unknown.
/// - `expired_token` if the code has expired.
/// - `INVALID_STATE` if another decision was taken before.
/// - `access_denied` if the user is banned.
/// - `FORBIDDEN` for the session of a program. Otherwise a stolen access token could create a lasting session.
pub async fn decide(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    code: &UserCode,
    decision: DeviceDecision,
) -> Result<()> {
    let (session, device) = find_for_decision(scope, uow, code).await?;
    let event = DeviceEvent::from(decision);
    let moves = event.transition();
    if device.status == moves.to && device.user_id.as_ref() == Some(&session.user_id) {
        return Ok(());
    }
    let mut next = device.edit();
    next.status = event.next(device.status)?;
    next.user_id = Some(session.user_id.clone());
    next.organization_id = session.active_organization_id.clone();
    let cx = &cx.without_conditions();
    audited::replace(cx, scope, uow, &device, next, moves.action).await?;
    Ok(())
}

/// Returns the pending device with this code, for a person who is about to decide.
///
/// # Errors
/// Those of [`decide`]; also `NOT_FOUND` if a decision was already taken.
pub async fn pending(
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    code: &UserCode,
) -> Result<Stored<DeviceAuthorization>> {
    let (_, device) = find_for_decision(scope, uow, code).await?;
    if device.status != DeviceStatus::Pending {
        return Err(Error::NotFound(DeviceAuthorization::KIND));
    }
    Ok(device)
}

/// Revokes all approvals of a user that have not been exchanged for tokens.
pub(in crate::use_case::iam) async fn revoke_approvals(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
) -> Result<()> {
    let approved = DeviceAuthorizationQuery::ApprovedBy(user.clone());
    let mut devices = Batches::<DeviceAuthorization>::of(approved);
    while let Some(batch) = devices.next(unowned_records(uow)).await? {
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
    let action = event.transition().action;
    audited::replace(cx, scope, uow, device, next, action).await?;
    Ok(())
}

/// Returns the devices that the person has approved and that can still get their first tokens, at most 100.
///
/// # Errors
/// Only those of the store.
pub async fn list_approved(
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<DeviceAuthorization>>> {
    let approved = DeviceAuthorizationQuery::ApprovedBy(scope.user_id().clone());
    let mut devices = unowned_records::<DeviceAuthorization>(uow)
        .list(&approved, MAX_LISTED)
        .await?;
    let now = uow.now().await?;
    devices.retain(|device| !device.is_expired(now));
    Ok(devices)
}

/// Revokes the person's approval of a device that has not exchanged its code for tokens.
///
/// # Errors
/// `NOT_FOUND` if the person did not approve the device, or if it already has tokens.
pub async fn revoke_approval(
    cx: &Context,
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
    id: &DeviceAuthorizationId,
) -> Result<()> {
    let device = unowned_records::<DeviceAuthorization>(uow).get(id).await?;
    let is_approved = device.status == DeviceStatus::Approved;
    if !is_approved || device.user_id.as_ref() != Some(scope.user_id()) {
        return Err(Error::NotFound(DeviceAuthorization::KIND));
    }
    revoke(cx, scope, uow, &device).await
}

/// Returns the session of the person who decides, and the device with this code.
async fn find_for_decision(
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    code: &UserCode,
) -> Result<(Stored<Session>, Stored<DeviceAuthorization>)> {
    let session = unowned_records::<Session>(uow)
        .find(scope.session_id())
        .await?;
    let session = session.ok_or(Error::Unauthorized)?;
    if session.client_id.is_some() {
        return Err(Error::Forbidden);
    }
    let user = unowned_records::<User>(uow).find(&session.user_id).await?;
    if user.is_none_or(|user| user.banned_at.is_some()) {
        return Err(TokenRefusal::AccessDenied.into());
    }
    let with_code = DeviceAuthorizationQuery::WithUserCode(code.clone());
    let device = unowned_records::<DeviceAuthorization>(uow)
        .first(&with_code)
        .await?;
    let device = device.ok_or(Error::NotFound(DeviceAuthorization::KIND))?;
    if device.is_expired(uow.now().await?) {
        return Err(Error::refused(Code::ExpiredToken, "The code has expired."));
    }
    Ok((session, device))
}
