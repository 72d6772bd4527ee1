//! Making keys.

use std::time::Duration;

use super::{key_name, requests_per_minute};
use crate::access::{NewApiKeyScope, audited, ensure_fresh, ensure_room, unowned};
use crate::iam::{
    ApiKey, ApiKeyOwner, ApiKeyQuery, ApiKeySecret, ApiKeyStatus, DEFAULT_REQUESTS_PER_MINUTE,
    KeyPrefix, LONGEST_LIFETIME, Organization, SHORTEST_LIFETIME, organization_key_patterns,
};
use crate::kernel::{
    ApiKeyId, Code, Context, Error, Line, PermissionPattern, PlatformId, Result, Stored, Timestamp,
};
use crate::port::UnitOfWork;

/// What somebody wants of a new key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewApiKey {
    /// What they call it.
    pub name: Option<Line<0, 255>>,
    /// What it shall begin with, after `core_`.
    pub prefix: Option<KeyPrefix>,
    /// For how many seconds it shall live; until it is deleted when not said.
    pub expires_in: Option<i64>,
    /// What it is narrowed to; everything its owner may when not said.
    pub scopes: Option<Vec<PermissionPattern>>,
    /// How often it may be used in a minute.
    pub requests_per_minute: Option<u32>,
}

/// A key with a secret that nobody has seen yet.
#[derive(Clone, Debug, PartialEq)]
pub struct IssuedApiKey {
    /// The key.
    pub key: Stored<ApiKey>,
    /// Its secret. Shown now and never again.
    pub secret: ApiKeySecret,
}

/// Makes a key.
///
/// # Errors
/// `INVALID_NAME_LENGTH`, `EXPIRES_IN_IS_TOO_SMALL`, `EXPIRES_IN_IS_TOO_LARGE`; `FORBIDDEN` when the maker lacks some of
/// what it shall be allowed, or may not set its limit; `CONFLICT` when the organization has no platform to act for;
/// `LIMIT_REACHED` for an owner with as many keys as one may have.
pub async fn create(
    cx: &Context,
    scope: &NewApiKeyScope,
    uow: &mut dyn UnitOfWork,
    new: NewApiKey,
) -> Result<IssuedApiKey> {
    ensure_fresh(cx, uow).await?;
    let now = uow.now().await?;
    let organization = scope.organization();
    let platform_id = organization.map(|own| platform_of(own)).transpose()?;
    let owner = scope.owner();
    let limit = match new.requests_per_minute {
        Some(wanted) => requests_per_minute(wanted, scope.is_owner())?,
        None => DEFAULT_REQUESTS_PER_MINUTE,
    };
    let secret = ApiKeySecret::generate(new.prefix.as_ref(), cx.entropy.as_ref());
    let key = ApiKey {
        id: ApiKeyId::generate(now, cx.entropy.as_ref()),
        user_id: match &owner {
            ApiKeyOwner::User(user) => Some(user.clone()),
            ApiKeyOwner::Organization(_) => None,
        },
        organization_id: organization.map(|own| own.id.clone()),
        platform_id,
        name: new.name.as_ref().map(key_name).transpose()?,
        prefix: new.prefix,
        start: secret.start(),
        scopes: new.scopes.map(sorted),
        requests_per_minute: limit,
        status: ApiKeyStatus::Active,
        token_hash: secret.hash(),
        previous_hash: None,
        previous_until: None,
        expires_at: new.expires_in.map(|life| end_of(life, now)).transpose()?,
        last_used_at: None,
        created_at: now,
        updated_at: now,
    };
    ensure_held(scope, &key)?;
    ensure_room_for_key(cx, uow, &owner, now).await?;
    let key = audited::insert(cx, scope, uow, key, "api_key.created").await?;
    Ok(IssuedApiKey { key, secret })
}

/// Returns the platform of the organization that a key is to act for.
fn platform_of(organization: &Organization) -> Result<PlatformId> {
    organization.platform_id.clone().ok_or_else(|| {
        let message = "The organization has no platform for a key to act for.";
        Error::refused(Code::Conflict, message)
    })
}

fn sorted(mut scopes: Vec<PermissionPattern>) -> Vec<PermissionPattern> {
    scopes.sort();
    scopes.dedup();
    scopes
}

fn end_of(life: i64, now: Timestamp) -> Result<Timestamp> {
    let life = Duration::from_secs(u64::try_from(life).unwrap_or(0));
    if life < SHORTEST_LIFETIME {
        let message = "The expiresIn is smaller than the predefined minimum value.";
        return Err(Error::refused(Code::ExpiresInTooSmall, message));
    }
    if life > LONGEST_LIFETIME {
        let message = "The expiresIn is larger than the predefined maximum value.";
        return Err(Error::refused(Code::ExpiresInTooLarge, message));
    }
    Ok(now.plus(life))
}

/// Nobody gives what they lack. A key of one's own may never more than oneself, whatever it says.
fn ensure_held(scope: &NewApiKeyScope, key: &ApiKey) -> Result<()> {
    let given = match &key.user_id {
        Some(_) => key.scopes.clone().unwrap_or_default(),
        None => organization_key_patterns(key),
    };
    if given.iter().all(|pattern| scope.holds(pattern)) {
        Ok(())
    } else {
        Err(Error::Forbidden)
    }
}

/// Removes the owner's keys that ended long ago, and refuses one more than the limit.
async fn ensure_room_for_key(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    owner: &ApiKeyOwner,
    now: Timestamp,
) -> Result<()> {
    let forgotten = ApiKeyQuery::forgotten(owner, now);
    unowned::<ApiKey>(uow).remove_all(&forgotten).await?;
    let of_owner = ApiKeyQuery::of_owner(owner);
    let limit = cx.limits.api_keys_per_owner;
    let message = "There are as many API keys as one owner may have. Delete one first.";
    ensure_room::<ApiKey>(unowned(uow), &of_owner, limit, message).await
}
