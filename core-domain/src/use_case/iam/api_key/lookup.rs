//! From a secret to who is behind it: authentication itself, so nobody is asked for a permission.

use super::super::session::grants_end;
use crate::access::{api_key_context, unaudited, unowned};
use crate::iam::{ApiKey, ApiKeyRefusal, ApiKeySecret, key_membership};
use crate::kernel::{ApiKeyId, Caller, Membership, Result, Stored, Timestamp};
use crate::port::{ApiKeyContext, ApiKeySecretKey, UnitOfWork};

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
