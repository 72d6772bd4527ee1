//! The device's side: it asks for codes, and for its tokens once a person has approved.

use super::grant::{GrantOutcome, GrantRefusal};
use super::tokens::issue;
use crate::access::{PublicScope, audited, unaudited, unowned};
use crate::iam::{
    DeviceAuthorization, DeviceAuthorizationQuery, DeviceEvent, DevicePoll, DeviceStatus,
    OAuthClient, TokenHash, User, UserCode,
};
use crate::kernel::{
    Context, DeviceAuthorizationId, Error, Machine, Result, StoreError, Stored, TOKEN_LENGTH,
    secret_token,
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
