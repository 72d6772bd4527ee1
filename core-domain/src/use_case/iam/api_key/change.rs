//! Changing, rotating and deleting keys; each counts from the next request on.

use std::time::Duration;

use super::{IssuedApiKey, key_name, requests_per_minute};
use crate::access::{ApiKeyScope, Batches, Covers, audited, ensure_fresh, unowned};
use crate::iam::{ApiKey, ApiKeyEvent, ApiKeyQuery, ApiKeySecret, ApiKeyStatus};
use crate::kernel::{
    Code, Context, Effect, Error, Line, Machine, Result, Stored, Unowned, UserId, grant,
};
use crate::port::UnitOfWork;

/// What somebody wants to change of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateApiKey {
    /// What they call it from now on.
    pub name: Option<Line<0, 255>>,
    /// Whether it is accepted from now on.
    pub enabled: Option<bool>,
    /// How often it may be used in a minute from now on.
    pub requests_per_minute: Option<u32>,
}

/// Changes a key.
///
/// # Errors
/// `NO_VALUES_TO_UPDATE`; `INVALID_NAME_LENGTH`; `FORBIDDEN` when the caller may not set its limit.
pub async fn update(
    cx: &Context,
    scope: &ApiKeyScope<grant::ApiKeyWrite>,
    uow: &mut dyn UnitOfWork,
    change: UpdateApiKey,
) -> Result<Stored<ApiKey>> {
    if change == UpdateApiKey::default() {
        let message = "No values to update.";
        return Err(Error::refused(Code::NoValuesToUpdate, message));
    }
    let mut next = scope.key().edit();
    if let Some(name) = &change.name {
        next.name = Some(key_name(name)?);
    }
    if let Some(wanted) = change.requests_per_minute {
        next.requests_per_minute = requests_per_minute(wanted, scope.is_owner())?;
    }
    let mut action = "api_key.updated";
    if let Some(enabled) = change.enabled {
        let wanted = if enabled {
            ApiKeyStatus::Active
        } else {
            ApiKeyStatus::Disabled
        };
        if let Some(event) = ApiKeyEvent::between(next.status, wanted)? {
            action = event.of_event().action;
            next.status = wanted;
        }
    }
    replace(cx, scope, uow, next, action).await
}

/// Gives a key a new secret; the one it has goes on working for the overlap, of [`crate::iam::LONGEST_OVERLAP`] at most.
///
/// # Errors
/// `FORBIDDEN` when the caller lacks some of what the key may, for they would have it then; `INVALID_STATE` and `CONFLICT`
/// as [`ApiKey::rotate`].
pub async fn rotate(
    cx: &Context,
    scope: &ApiKeyScope<grant::ApiKeyWrite>,
    uow: &mut dyn UnitOfWork,
    overlap: Duration,
) -> Result<IssuedApiKey> {
    if !scope.holds_scopes() {
        return Err(Error::Forbidden);
    }
    ensure_fresh(cx, uow).await?;
    let seen = scope.key();
    let secret = ApiKeySecret::generate(seen.prefix.as_ref(), cx.entropy.as_ref());
    let next = seen.rotate(&secret, overlap, uow.now().await?)?;
    let key = replace(cx, scope, uow, next, "api_key.rotated").await?;
    Ok(IssuedApiKey { key, secret })
}

/// Deletes a key: it is never accepted again. What presents it is told so for a while.
///
/// # Errors
/// When the store failed.
pub async fn delete(
    cx: &Context,
    scope: &ApiKeyScope<grant::ApiKeyWrite>,
    uow: &mut dyn UnitOfWork,
) -> Result<()> {
    revoke(cx, scope, uow, scope.key()).await
}

/// Deletes every key that somebody has made for themselves.
pub(in crate::use_case::iam) async fn delete_all_of_user(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
) -> Result<()> {
    let of_user = ApiKeyQuery::OfUser(user.clone());
    let mut keys = Batches::<ApiKey>::of(of_user);
    while let Some(batch) = keys.next(unowned(uow)).await? {
        for key in batch {
            revoke(cx, scope, uow, &key).await?;
        }
    }
    Ok(())
}

async fn revoke(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    key: &Stored<ApiKey>,
) -> Result<()> {
    let mut next = key.edit();
    next.status = ApiKeyEvent::Revoke.next(next.status)?;
    let action = ApiKeyEvent::Revoke.of_event().action;
    let stored = audited::replace(cx, scope, uow, key, next, action).await?;
    uow.effects().add(Effect::ApiKeyChanged(stored.id.clone()));
    Ok(())
}

async fn replace(
    cx: &Context,
    scope: &ApiKeyScope<grant::ApiKeyWrite>,
    uow: &mut dyn UnitOfWork,
    next: ApiKey,
    action: &'static str,
) -> Result<Stored<ApiKey>> {
    let stored = audited::replace(cx, scope, uow, scope.key(), next, action).await?;
    uow.effects().add(Effect::ApiKeyChanged(stored.id.clone()));
    Ok(stored)
}
