//! The device's side: it asks for codes, and for its tokens once a person has approved.

use super::token::{GrantOutcome, GrantRefusal, issue};
use crate::access::{
    Batches, Covers, PersonScope, PublicScope, SessionScope, audited, unaudited, unowned,
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

/// How many user codes are tried until one is free: of 25 billion, hardly ever more than one.
const ATTEMPTS: u32 = 5;

/// The codes of a device that wants to sign in.
#[derive(Clone, PartialEq)]
pub struct DeviceCodes {
    /// What the device polls with. Shown now and never again.
    pub device_code: String,
    /// The rest.
    pub authorization: Stored<DeviceAuthorization>,
}

// The code stays out of logs.
impl std::fmt::Debug for DeviceCodes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceCodes")
            .field("authorization", &self.authorization.id)
            .finish_non_exhaustive()
    }
}

/// Gives a device its codes.
///
/// # Errors
/// When the store failed.
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
            expires_at: DeviceAuthorization::end(now),
        };
        // Anybody may ask; what counts is who approves.
        match unaudited::insert(uow, wanted).await {
            Err(Error::Store(StoreError::Conflict { .. })) if attempt < ATTEMPTS => attempt += 1,
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
    let devices = unowned::<DeviceAuthorization>(uow);
    let found = devices.first(&with_code).await?;
    Ok(found.filter(|device| device.client_id == client))
}

/// Tells whether a device code of the client is stored. Reads only.
///
/// # Errors
/// When the store failed.
pub async fn has_device_code(
    _: &PublicScope,
    uow: &mut dyn UnitOfWork,
    client: OAuthClient,
    device_code: &str,
) -> Result<bool> {
    Ok(find(uow, client, device_code).await?.is_some())
}

/// Answers a device that asks for its tokens. It gets them once: with them begins a session of the person who approved, which
/// acts for the organization they acted for then.
///
/// # Errors
/// When the store failed.
pub async fn redeem(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    client: OAuthClient,
    device_code: &str,
) -> Result<GrantOutcome> {
    let Some(device) = find(uow, client, device_code).await? else {
        return Ok(Err(GrantRefusal::InvalidGrant));
    };
    let now = uow.now().await?;
    let refusal = match device.poll(now) {
        DevicePoll::Approved => return begin(cx, scope, uow, &device).await,
        DevicePoll::Expired => GrantRefusal::ExpiredToken,
        DevicePoll::Denied => GrantRefusal::AccessDenied,
        DevicePoll::Redeemed => GrantRefusal::InvalidGrant,
        poll => {
            unaudited::replace(uow, &device, device.polled(now)).await?;
            match poll {
                DevicePoll::TooFast => GrantRefusal::SlowDown,
                _ => GrantRefusal::AuthorizationPending,
            }
        }
    };
    Ok(Err(refusal))
}

async fn begin(
    cx: &Context,
    scope: &PublicScope,
    uow: &mut dyn UnitOfWork,
    device: &Stored<DeviceAuthorization>,
) -> Result<GrantOutcome> {
    let user = match &device.user_id {
        Some(user) => unowned::<User>(uow).find(user).await?,
        None => None,
    };
    let Some(user) = user else {
        return Ok(Err(GrantRefusal::InvalidGrant));
    };
    if user.banned_at.is_some() {
        return Ok(Err(GrantRefusal::AccessDenied));
    }
    let (client, organization) = (device.client_id, device.organization_id.clone());
    let session = session::begin_for_client(cx, uow, &user, client, organization).await?;
    let mut next = device.edit();
    next.status = DeviceEvent::Redeem.next(device.status)?;
    let action = DeviceEvent::Redeem.of_event().action;
    let as_user = session::as_user(cx, &user).consequence();
    audited::replace(&as_user, scope, uow, device, next, action).await?;
    Ok(Ok(issue(cx, uow, &session, None).await?))
}

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
