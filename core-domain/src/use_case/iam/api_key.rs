//! API keys: made, changed, rotated and deleted by people, and looked up by their secret.

use std::time::Duration;

use super::session::grants_end;
use crate::access::{
    ApiKeyScope, Batches, Covers, MembershipScope, NewApiKeyScope, PersonScope, all_unowned,
    api_key_context, audited, ensure_fresh, ensure_room, unaudited, unowned,
};
use crate::iam::{
    ApiKey, ApiKeyEvent, ApiKeyOwner, ApiKeyQuery, ApiKeyRefusal, ApiKeySecret, ApiKeyStatus,
    DEFAULT_REQUESTS_PER_MINUTE, KeyPrefix, LONGEST_LIFETIME, MAX_REQUESTS_PER_MINUTE,
    Organization, SHORTEST_LIFETIME, key_membership, organization_key_patterns,
};
use crate::kernel::{
    ApiKeyId, Caller, Code, Context, Effect, Error, Line, Machine, Membership, OrganizationId,
    PermissionPattern, PlatformId, Result, Stored, Timestamp, Unowned, UserId, grant,
};
use crate::port::{ApiKeyContext, ApiKeySecretKey, UnitOfWork};
use crate::use_case::shared::remove_first;

/// Removes every key that acts for a platform that is gone.
pub(in crate::use_case::iam) async fn remove_of_platform(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
) -> Result<()> {
    let of_platform = ApiKeyQuery::OfPlatform(platform.clone());
    unowned::<ApiKey>(uow).remove_all(&of_platform).await?;
    Ok(())
}

/// Removes the keys that somebody has made for themselves in an organization they leave: whoever comes back gets none of them back.
pub(in crate::use_case::iam) async fn remove_of_member(
    uow: &mut dyn UnitOfWork,
    organization: &OrganizationId,
    user: &UserId,
) -> Result<()> {
    let of_member = ApiKeyQuery::OfMember(organization.clone(), user.clone());
    unowned::<ApiKey>(uow).remove_all(&of_member).await?;
    Ok(())
}

/// Removes the keys that somebody has made for themselves; tells how many.
pub(in crate::use_case::iam) async fn remove_of_user(
    uow: &mut dyn UnitOfWork,
    user: &UserId,
) -> Result<u64> {
    let of_user = ApiKeyQuery::OfUser(user.clone());
    unowned::<ApiKey>(uow).remove_all(&of_user).await
}

/// Removes at most `limit` of the keys that were revoked or expired long ago. Returns their number; 0 means that none is left.
///
/// # Errors
/// When the store failed.
pub async fn remove_forgotten(uow: &mut dyn UnitOfWork, limit: u32) -> Result<u64> {
    let (mut removed, mut rest) = (0, limit);
    for forgotten in ApiKeyQuery::all_forgotten(uow.now().await?) {
        if rest > 0 {
            let slice = remove_first::<ApiKey>(uow, &forgotten, rest).await?;
            rest = rest.saturating_sub(u32::try_from(slice).unwrap_or(rest));
            removed += slice;
        }
    }
    Ok(removed)
}

/// The name of a key, of 1 to 32 characters.
fn key_name(name: &Line<0, 255>) -> Result<Line<1, 32>> {
    Line::parse(name.as_str()).map_err(|_| {
        let message = "The name length is either too large or too small.";
        Error::refused(Code::InvalidNameLength, message)
    })
}

/// The limit of a key, which is for the owners of its organization to set, and for operators.
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

/// The person's keys, newest first, whatever organizations they act for; a limit keeps them few.
///
/// # Errors
/// When the store failed.
pub async fn own(scope: &PersonScope, uow: &mut dyn UnitOfWork) -> Result<Vec<Stored<ApiKey>>> {
    let own = ApiKeyQuery::OfUser(scope.user_id().clone());
    all_unowned::<ApiKey>(uow, own).await
}

/// The organization's own keys, newest first; a limit keeps them few.
///
/// # Errors
/// When the store failed.
pub async fn of_organization(
    scope: &MembershipScope<grant::ApiKeyRead>,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<ApiKey>>> {
    let of_organization = ApiKeyQuery::OfOrganization(scope.organization().id.clone());
    all_unowned::<ApiKey>(uow, of_organization).await
}

/// A key that is accepted, and what it lets its holder do.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiKeyDetails {
    /// The key.
    pub key: Stored<ApiKey>,
    /// What it acts as in its organization, at the instant of the look-up; `None` for a personal key.
    pub membership: Option<Membership>,
    /// Whether its platform is suspended.
    pub suspended: bool,
    /// Until when this is true if nobody changes anything: the secret ends then, or a grant of the owner does.
    pub valid_until: Option<Timestamp>,
    /// Whether its use should be noted now, with [`note_use`] in a write unit.
    pub use_is_due: bool,
}

impl ApiKeyDetails {
    /// The caller the key stands for.
    #[must_use]
    pub fn caller(&self) -> Caller {
        Caller::ApiKey {
            key_id: self.key.id.clone(),
            user_id: self.key.user_id.clone(),
            membership: self.membership.clone(),
        }
    }
}

/// Finds the key of a secret, or why it is not accepted. Reads only.
///
/// # Errors
/// When the store failed.
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
    Ok(ends.and_then(|ends| accepted(context, ends, now)))
}

/// As [`details_by_secret`], of a key that was accepted before; `None` when it would not be accepted now.
///
/// # Errors
/// When the store failed.
pub async fn details_by_id(
    uow: &mut dyn UnitOfWork,
    id: &ApiKeyId,
) -> Result<Option<ApiKeyDetails>> {
    let Some(key) = unowned::<ApiKey>(uow).find(id).await? else {
        return Ok(None);
    };
    let hash = &key.token_hash;
    let Some(context) = api_key_context(uow, ApiKeySecretKey::Current(hash)).await? else {
        return Ok(None);
    };
    let now = uow.now().await?;
    let ends = context.key.check(hash, now);
    Ok(ends.and_then(|ends| accepted(context, ends, now)).ok())
}

fn accepted(
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
        // A personal key has an owner, who was looked at above.
        (None, _) if owner.is_some() => None,
        _ => return Err(ApiKeyRefusal::Revoked),
    };
    let ends = ends.into_iter().chain(grants_end(member, now));
    Ok(ApiKeyDetails {
        membership,
        suspended: context.suspension.is_some(),
        valid_until: ends.min(),
        use_is_due: context.key.use_is_due(now),
        key: context.key,
    })
}

/// Notes that a key was used, unless that was noted less than a minute ago.
///
/// # Errors
/// When the store failed, or somebody changed the key meanwhile.
pub async fn note_use(uow: &mut dyn UnitOfWork, id: &ApiKeyId) -> Result<()> {
    let Some(key) = unowned::<ApiKey>(uow).find(id).await? else {
        return Ok(());
    };
    let now = uow.now().await?;
    if key.use_is_due(now) {
        let mut next = key.edit();
        next.last_used_at = Some(now);
        unaudited::replace(uow, &key, next).await?;
    }
    Ok(())
}
