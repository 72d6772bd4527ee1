//! Lists and ends everything that can act for a person: sessions, devices, API keys and factors. Each item is ended by
//! its own use case.

use super::two_factor;
use super::verification::Notices;
use super::{api_key, oauth, passkey, session};
use crate::access::{
    EnrolledFactors, PersonScope, SessionScope, authorize_api_key, authorize_person, ensure_fresh,
};
use crate::iam::{ApiKey, DeviceAuthorization, Passkey, Session, TrustedDevice};
use crate::kernel::{
    ApiKeyId, Code, Context, DeviceAuthorizationId, Error, PasskeyId, Result, SessionId, Stored,
    Timestamp, permission,
};
use crate::port::UnitOfWork;

/// The sessions, devices, keys and factors that can act for a person.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnAccess {
    /// The valid sessions of browsers and programs, newest first.
    pub sessions: Vec<Stored<Session>>,
    /// The devices that the person has approved and that have no tokens yet.
    pub approved_devices: Vec<Stored<DeviceAuthorization>>,
    /// The devices on which a password sign-in needs no second factor, newest first.
    pub trusted_devices: Vec<Stored<TrustedDevice>>,
    /// The person's API keys, newest first.
    pub api_keys: Vec<Stored<ApiKey>>,
    /// The person's passkeys, oldest first.
    pub passkeys: Vec<Stored<Passkey>>,
    /// Whether the person has a confirmed authenticator app, whose codes sign-ins require.
    pub has_authenticator: bool,
}

/// Returns everything that can act for the person.
///
/// # Errors
/// Only those of the store.
pub async fn list(scope: &PersonScope, uow: &mut dyn UnitOfWork) -> Result<OwnAccess> {
    Ok(OwnAccess {
        sessions: session::list(scope, uow).await?,
        approved_devices: oauth::list_approved(scope, uow).await?,
        trusted_devices: session::list_trusted_devices(scope, uow).await?,
        api_keys: api_key::list_own(scope, uow).await?,
        passkeys: passkey::list(scope, uow).await?,
        has_authenticator: EnrolledFactors::of(uow, scope.user_id()).await?.totp,
    })
}

/// An item that can act for a person, or can help to sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessItem {
    /// A session of a browser or program.
    Session(SessionId),
    /// A device that the person has approved and that has no tokens yet.
    ApprovedDevice(DeviceAuthorizationId),
    /// The device that became trusted at this time. Its token changes with each sign-in, so the time identifies it.
    TrustedDevice(Timestamp),
    /// An API key of the person.
    ApiKey(ApiKeyId),
    /// A passkey of the person.
    Passkey(PasskeyId),
    /// The authenticator app, with its recovery codes.
    Authenticator,
}

/// The items that a person wants to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessSelection {
    /// The listed items.
    Items(Vec<AccessItem>),
    /// All items except the session of the caller and the authenticator app, which cannot sign in alone.
    Everything,
}

/// Ends items that can act for the person. Skips items that have already ended.
///
/// # Errors
/// - `UNAUTHORIZED` if the session of the caller has ended.
/// - `STEP_UP_REQUIRED` without a fresh proof of the caller's identity.
pub async fn end_access(
    cx: &Context,
    scope: &SessionScope,
    uow: &mut dyn UnitOfWork,
    selection: &AccessSelection,
    notices: Notices<'_>,
) -> Result<()> {
    ensure_fresh(cx, uow).await?;
    let cx = &cx.without_conditions();
    let person = &authorize_person(cx)?;
    let items = match selection {
        AccessSelection::Items(items) => items.clone(),
        AccessSelection::Everything => {
            session::revoke_all(cx, scope, uow, false).await?;
            keys_and_passkeys(person, uow).await?
        }
    };
    for item in &items {
        match end_item(cx, scope, person, uow, item, notices).await {
            Err(error) if !is_missing(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

async fn keys_and_passkeys(
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<AccessItem>> {
    let keys = api_key::list_own(scope, uow).await?;
    let keys = keys.iter().map(|key| AccessItem::ApiKey(key.id.clone()));
    let passkeys = passkey::list(scope, uow).await?;
    let passkeys = passkeys.iter();
    let passkeys = passkeys.map(|passkey| AccessItem::Passkey(passkey.id.clone()));
    Ok(keys.chain(passkeys).collect())
}

async fn end_item(
    cx: &Context,
    scope: &SessionScope,
    person: &PersonScope,
    uow: &mut dyn UnitOfWork,
    item: &AccessItem,
    notices: Notices<'_>,
) -> Result<()> {
    match item {
        AccessItem::Session(id) => session::revoke(cx, person, uow, id).await,
        AccessItem::ApprovedDevice(id) => oauth::revoke_approval(cx, person, uow, id).await,
        AccessItem::TrustedDevice(since) => {
            session::remove_trusted_device(cx, person, uow, *since).await
        }
        AccessItem::ApiKey(id) => {
            let key = authorize_api_key::<permission::ApiKeyWrite>(cx, uow, id).await?;
            api_key::delete(cx, &key, uow).await
        }
        AccessItem::Passkey(id) => passkey::remove(cx, person, uow, id, notices).await,
        AccessItem::Authenticator => two_factor::disable(cx, scope, uow, None, notices).await,
    }
}

fn is_missing(error: &Error) -> bool {
    matches!(
        error.code(),
        Code::NotFound | Code::KeyNotFound | Code::PasskeyNotFound | Code::TwoFactorNotEnabled
    )
}
