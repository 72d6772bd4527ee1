//! Creates, changes, rotates and deletes API keys, and looks them up by their secret.

use std::time::Duration;

use super::session::first_grant_expiry;
use crate::access::{
    ApiKeyScope, Batches, Covers, MembershipScope, NewApiKeyScope, PersonScope, all_unowned,
    api_key_context, audited, ensure_fresh, ensure_room, unaudited, unowned_records,
};
use crate::iam::{
    ApiKey, ApiKeyEvent, ApiKeyOwner, ApiKeyQuery, ApiKeyRefusal, ApiKeySecret, ApiKeyStatus,
    DEFAULT_REQUESTS_PER_MINUTE, KeyPrefix, MAX_API_KEY_LIFETIME, MAX_REQUESTS_PER_MINUTE,
    MIN_API_KEY_LIFETIME, Organization, key_membership, organization_key_patterns,
};
use crate::kernel::{
    ApiKeyId, Caller, Code, Context, Effect, Error, Line, Machine, Membership, OrganizationId,
    PermissionPattern, PlatformId, Result, Stored, Timestamp, Unowned, UserId, permission,
};
use crate::port::{ApiKeyContext, ApiKeySecretKey, UnitOfWork};
use crate::use_case::shared::remove_first;

/// Removes all API keys that act for a deleted platform.
pub(in crate::use_case::iam) async fn remove_of_platform(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
) -> Result<()> {
    let of_platform = ApiKeyQuery::OfPlatform(platform.clone());
    unowned_records::<ApiKey>(uow)
        .remove_all(&of_platform)
        .await?;
    Ok(())
}

/// Removes the keys that a user created for themselves in an organization that they leave. The keys do not come back if
/// the user joins again.
pub(in crate::use_case::iam) async fn remove_of_member(
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
    user: &UserId,
) -> Result<()> {
    let of_member = ApiKeyQuery::OfMember(organization.clone(), user.clone());
    unowned_records::<ApiKey>(uow)
        .remove_all(&of_member)
        .await?;
    Ok(())
}

/// Removes the keys that a user created for themselves, and returns their number.
pub(in crate::use_case::iam) async fn remove_of_user(
    uow: &mut dyn UnitOfWork,
    user: &UserId,
) -> Result<u64> {
    let of_user = ApiKeyQuery::OfUser(user.clone());
    unowned_records::<ApiKey>(uow).remove_all(&of_user).await
}

/// Removes at most `limit` keys that were revoked or expired more than 30 days ago. Returns their number; 0 means that
/// none is left.
///
/// # Errors
/// Only those of the store.
pub async fn remove_ended(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let (mut removed, mut rest) = (0, limit);
    for forgotten in ApiKeyQuery::all_ended(uow.now().await?) {
        if rest > 0 {
            let slice = remove_first::<ApiKey>(uow, &forgotten, rest).await?;
            rest = rest.saturating_sub(u32::try_from(slice).unwrap_or(rest));
            removed += slice;
        }
    }
    Ok(removed)
}

/// Checks that the name of a key has 1 to 32 characters.
fn key_name(name: &Line<0, 255>) -> Result<Line<1, 32>> {
    Line::parse(name.as_str()).map_err(|_| {
        let message = "The name length is either too large or too small.";
        Error::refused(Code::InvalidNameLength, message)
    })
}

/// Checks the requested limit of a key. Only owners of the organization and operators may set it.
fn requests_per_minute(wanted: u32, is_owner: bool) -> Result<u32> {
    if !is_owner {
        return Err(Error::Forbidden);
    }
    if (1..=MAX_REQUESTS_PER_MINUTE).contains(&wanted) {
        return Ok(wanted);
    }
    let message = format!("must be between 1 and {MAX_REQUESTS_PER_MINUTE}");
    Err(Error::invalid("requestsPerMinute", "out_of_range", message))
}

/// Changes to an API key. Fields with `None` stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpdateApiKey {
    /// The new name, of 1 to 32 characters.
    pub name: Option<Line<0, 255>>,
    /// Whether the key is enabled, so that requests with it are accepted.
    pub enabled: Option<bool>,
    /// Maximum number of requests per minute, from 1 to 10,000. Only owners and operators may set it.
    pub requests_per_minute: Option<u32>,
}

/// Changes an API key.
///
/// # Errors
/// - `NO_VALUES_TO_UPDATE` if no field is set.
/// - `INVALID_NAME_LENGTH` if the name does not have 1 to 32 characters.
/// - `VALIDATION_ERROR` if the limit is out of range.
/// - `FORBIDDEN` if the caller may not set the limit.
pub async fn update(
    cx: &Context,
    scope: &ApiKeyScope<permission::ApiKeyWrite>,
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
            action = event.transition().action;
            next.status = wanted;
        }
    }
    replace(cx, scope, uow, next, action).await
}

/// Gives a key a new secret. The old secret stays valid for `overlap`, which is at most
/// [`crate::iam::MAX_ROTATION_OVERLAP`].
///
/// # Errors
/// - `FORBIDDEN` if the caller lacks a permission of the key, because they would gain it with the secret.
/// - `STEP_UP_REQUIRED` without a fresh proof of the caller's identity.
/// - `INVALID_STATE` and `CONFLICT` from [`ApiKey::rotate`].
pub async fn rotate(
    cx: &Context,
    scope: &ApiKeyScope<permission::ApiKeyWrite>,
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

/// Deletes a key. Requests with it are refused from the commit on. For 30 days they get the code `REVOKED`.
///
/// # Errors
/// `VERSION_CONFLICT` if the `If-Match` condition of the request does not hold.
pub async fn delete(
    cx: &Context,
    scope: &ApiKeyScope<permission::ApiKeyWrite>,
    uow: &mut dyn UnitOfWork,
) -> Result<()> {
    revoke(cx, scope, uow, scope.key()).await
}

/// Deletes all keys that a user created for themselves.
pub(in crate::use_case::iam) async fn delete_all_of_user(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    user: &UserId,
) -> Result<()> {
    let of_user = ApiKeyQuery::OfUser(user.clone());
    let mut keys = Batches::<ApiKey>::of(of_user);
    while let Some(batch) = keys.next(unowned_records(uow)).await? {
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
    let action = ApiKeyEvent::Revoke.transition().action;
    let stored = audited::replace(cx, scope, uow, key, next, action).await?;
    uow.effects().add(Effect::ApiKeyChanged(stored.id.clone()));
    Ok(())
}

async fn replace(
    cx: &Context,
    scope: &ApiKeyScope<permission::ApiKeyWrite>,
    uow: &mut dyn UnitOfWork,
    next: ApiKey,
    action: &'static str,
) -> Result<Stored<ApiKey>> {
    let stored = audited::replace(cx, scope, uow, scope.key(), next, action).await?;
    uow.effects().add(Effect::ApiKeyChanged(stored.id.clone()));
    Ok(stored)
}

/// The properties of a new API key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewApiKey {
    /// The display name, of 1 to 32 characters.
    pub name: Option<Line<0, 255>>,
    /// The text that the secret starts with after `core_`.
    pub prefix: Option<KeyPrefix>,
    /// Lifetime in seconds; `None` for a key that does not expire.
    pub expires_in: Option<i64>,
    /// The permission patterns that restrict the key; `None` for all permissions of its owner.
    pub scopes: Option<Vec<PermissionPattern>>,
    /// Maximum number of requests per minute. Default: 600.
    pub requests_per_minute: Option<u32>,
}

/// An API key with its new secret.
#[derive(Clone, Debug, PartialEq)]
pub struct IssuedApiKey {
    /// The stored record of the key.
    pub key: Stored<ApiKey>,
    /// The secret, which is returned only once.
    pub secret: ApiKeySecret,
}

/// Creates an API key.
///
/// # Errors
/// - `STEP_UP_REQUIRED` without a fresh proof of the caller's identity.
/// - `INVALID_NAME_LENGTH`, `EXPIRES_IN_IS_TOO_SMALL` or `EXPIRES_IN_IS_TOO_LARGE` if a property is out of range.
/// - `VALIDATION_ERROR` if the limit of requests is out of range.
/// - `FORBIDDEN` if the creator lacks a permission of the key, or may not set its limit of requests.
/// - `CONFLICT` if the organization has no platform that the key could act for.
/// - `LIMIT_REACHED` if the owner has the maximum number of keys.
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
        scopes: new.scopes.map(sort_and_dedup),
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
    ensure_creator_has_scopes(scope, &key)?;
    ensure_room_for_key(cx, uow, &owner, now).await?;
    let key = audited::insert(cx, scope, uow, key, "api_key.created").await?;
    Ok(IssuedApiKey { key, secret })
}

/// Returns the platform of the organization that a key will act for.
fn platform_of(organization: &Organization) -> Result<PlatformId> {
    organization.platform_id.clone().ok_or_else(|| {
        let message = "The organization has no platform. An API key needs one to act for.";
        Error::refused(Code::Conflict, message)
    })
}

fn sort_and_dedup(mut scopes: Vec<PermissionPattern>) -> Vec<PermissionPattern> {
    scopes.sort();
    scopes.dedup();
    scopes
}

fn end_of(life: i64, now: Timestamp) -> Result<Timestamp> {
    let life = Duration::from_secs(u64::try_from(life).unwrap_or(0));
    if life < MIN_API_KEY_LIFETIME {
        let message = "The expiresIn is smaller than the predefined minimum value.";
        return Err(Error::refused(Code::ExpiresInTooSmall, message));
    }
    if life > MAX_API_KEY_LIFETIME {
        let message = "The expiresIn is larger than the predefined maximum value.";
        return Err(Error::refused(Code::ExpiresInTooLarge, message));
    }
    Ok(now.plus(life))
}

/// Checks that the creator has every permission of the key. A key of a user never exceeds the user's permissions at the
/// time of a request, so only its explicit scopes are checked.
fn ensure_creator_has_scopes(scope: &NewApiKeyScope, key: &ApiKey) -> Result<()> {
    let given = match &key.user_id {
        Some(_) => key.scopes.clone().unwrap_or_default(),
        None => organization_key_patterns(key),
    };
    if given.iter().all(|pattern| scope.has_permissions(pattern)) {
        Ok(())
    } else {
        Err(Error::Forbidden)
    }
}

/// Removes the owner's keys that ended more than 30 days ago, and checks the limit of keys per owner.
async fn ensure_room_for_key(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    owner: &ApiKeyOwner,
    now: Timestamp,
) -> Result<()> {
    let forgotten = ApiKeyQuery::ended_of_owner(owner, now);
    unowned_records::<ApiKey>(uow)
        .remove_all(&forgotten)
        .await?;
    let of_owner = ApiKeyQuery::of_owner(owner);
    let limit = cx.limits.api_keys_per_owner;
    let message = "The owner already has the maximum number of API keys. Delete one first.";
    ensure_room::<ApiKey>(unowned_records(uow), &of_owner, limit, message).await
}

/// Returns all keys of the person, newest first, for any organization. A limit keeps the list short.
///
/// # Errors
/// Only those of the store.
pub async fn list_own(
    scope: &PersonScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<ApiKey>>> {
    let own = ApiKeyQuery::OfUser(scope.user_id().clone());
    all_unowned::<ApiKey>(uow, own).await
}

/// Returns the keys that the organization owns, newest first. A limit keeps the list short.
///
/// # Errors
/// Only those of the store.
pub async fn list_of_organization(
    scope: &MembershipScope<permission::ApiKeyRead>,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<ApiKey>>> {
    let of_organization = ApiKeyQuery::OfOrganization(scope.organization().id.clone());
    all_unowned::<ApiKey>(uow, of_organization).await
}

/// An accepted API key, with the permissions of its holder.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiKeyDetails {
    /// The stored record of the key.
    pub key: Stored<ApiKey>,
    /// The roles and permissions of the key in its organization at the time of the look-up; `None` for a personal key.
    pub membership: Option<Membership>,
    /// Whether the key's platform is suspended.
    pub is_suspended: bool,
    /// The time until which these details stay valid if no record changes: the end of the secret, or of a grant of the
    /// owner. `None` if they have no such end.
    pub valid_until: Option<Timestamp>,
    /// Whether the use of the key must be stored now, by [`record_use`] in a write unit.
    pub use_is_due: bool,
}

impl ApiKeyDetails {
    /// Returns the caller that the key authenticates.
    #[must_use]
    pub fn caller(&self) -> Caller {
        Caller::ApiKey {
            key_id: self.key.id.clone(),
            user_id: self.key.user_id.clone(),
            membership: self.membership.clone(),
        }
    }
}

/// Finds the key with this secret, or returns the reason why it is not accepted. Only reads.
///
/// # Errors
/// Only those of the store.
pub async fn details_by_secret(
    uow: &mut dyn UnitOfWork,
    secret: &ApiKeySecret,
) -> Result<Result<ApiKeyDetails, ApiKeyRefusal>> {
    let hash = secret.hash();
    let mut found = api_key_context(uow, ApiKeySecretKey::Current(&hash)).await?;
    if found.is_none() {
        found = api_key_context(uow, ApiKeySecretKey::Previous(&hash)).await?;
    }
    let Some(context) = found else {
        return Ok(Err(ApiKeyRefusal::NotFound));
    };
    let now = uow.now().await?;
    let ends = context.key.check(&hash, now);
    Ok(ends.and_then(|ends| details_of_context(context, ends, now)))
}

/// Like [`details_by_secret`], by the id of a key that was accepted before. Returns `None` if it would not be accepted
/// now.
///
/// # Errors
/// Only those of the store.
pub async fn details_by_id(
    uow: &mut dyn UnitOfWork,
    id: &ApiKeyId,
) -> Result<Option<ApiKeyDetails>> {
    let Some(key) = unowned_records::<ApiKey>(uow).find(id).await? else {
        return Ok(None);
    };
    let hash = &key.token_hash;
    let Some(context) = api_key_context(uow, ApiKeySecretKey::Current(hash)).await? else {
        return Ok(None);
    };
    let now = uow.now().await?;
    let ends = context.key.check(hash, now);
    Ok(ends
        .and_then(|ends| details_of_context(context, ends, now))
        .ok())
}

fn details_of_context(
    context: ApiKeyContext,
    ends: Option<Timestamp>,
    now: Timestamp,
) -> Result<ApiKeyDetails, ApiKeyRefusal> {
    let owner = context
        .user
        .as_ref()
        .filter(|owner| owner.banned_at.is_none());
    if context.key.user_id.is_some() && owner.is_none() {
        return Err(ApiKeyRefusal::Revoked);
    }
    let member = context.member.as_deref();
    let membership = match (&context.key.organization_id, &context.organization) {
        (Some(_), Some(organization)) => {
            let acting = key_membership(&context.key, organization, member, now);
            Some(acting.ok_or(ApiKeyRefusal::Revoked)?)
        }
        // A personal key needs an owner who is not banned, which is checked above.
        (None, _) if owner.is_some() => None,
        _ => return Err(ApiKeyRefusal::Revoked),
    };
    let ends = ends.into_iter().chain(first_grant_expiry(member, now));
    Ok(ApiKeyDetails {
        membership,
        is_suspended: context.suspension.is_some(),
        valid_until: ends.min(),
        use_is_due: context.key.is_use_update_due(now),
        key: context.key,
    })
}

/// Stores that a key was used, unless a use was stored less than a minute ago.
///
/// # Errors
/// `CONFLICT` if a concurrent request changed the key.
pub async fn record_use(uow: &mut dyn UnitOfWork, id: &ApiKeyId) -> Result<()> {
    let Some(key) = unowned_records::<ApiKey>(uow).find(id).await? else {
        return Ok(());
    };
    let now = uow.now().await?;
    if key.is_use_update_due(now) {
        let mut next = key.edit();
        next.last_used_at = Some(now);
        unaudited::replace(uow, &key, next).await?;
    }
    Ok(())
}
