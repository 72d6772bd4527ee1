//! Making, finding and changing platforms.

use serde_json::{Value, json};

use super::access::{reach, refuse_deleted, shows_deleted};
use super::moves::record_move;
use super::onboarding::refuse_promised;
use crate::kernel::{
    Code, Context, Error, LifecycleId, Name, OrganizationId, Page, PageRequest, Permission,
    PlatformId, Result, Slug, UserId,
};
use crate::port::{StoreError, Stored, UnitOfWork};
use crate::registry::{
    LifecycleRecord, Platform, PlatformEvent, PlatformQuery, PlatformStatus, Tier,
};
use crate::shared::{Happening, audited, send};

/// What a new platform is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPlatform {
    /// What people call it.
    pub name: Name,
    /// Its name in addresses.
    pub slug: Slug,
    /// How much it may use.
    pub tier: Tier,
    /// Its account at the infrastructure provider.
    pub cf_account_id: Option<String>,
    /// The repository its code is in.
    pub repo_name: Option<String>,
}

/// What changes about a platform; `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlatformChange {
    /// What people call it.
    pub name: Option<Name>,
    /// How much it may use.
    pub tier: Option<Tier>,
    /// Where it stands.
    pub status: Option<PlatformStatus>,
    /// Its account at the infrastructure provider; `Some(None)` takes it away.
    pub cf_account_id: Option<Option<String>>,
    /// The repository its code is in; `Some(None)` takes it away.
    pub repo_name: Option<Option<String>>,
}

/// Makes a platform. One made by a person belongs to the organization they act for.
///
/// # Errors
/// `SLUG_TAKEN`; `UNAUTHORIZED`; `FORBIDDEN` without `platform:create`.
pub async fn create_platform(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    new: NewPlatform,
) -> Result<Stored<Platform>> {
    cx.caller.signed_in()?;
    let membership = cx.caller.membership();
    let permitted = membership.is_some_and(|m| m.permissions.allows(Permission::PlatformCreate));
    if !permitted && !cx.caller.is_operator() {
        return Err(Error::Forbidden);
    }
    refuse_promised(uow, &new.slug).await?;
    let now = uow.now().await?;
    let founding = Founding {
        id: PlatformId::generate(now, cx.entropy.as_ref()),
        owner: cx.caller.user_id().cloned(),
        organization: membership.map(|m| m.organization_id.clone()),
    };
    found(cx, uow, founding, new).await
}

/// Whose a new platform is.
#[derive(Clone, Debug)]
pub(super) struct Founding {
    pub(super) id: PlatformId,
    pub(super) owner: Option<UserId>,
    pub(super) organization: Option<OrganizationId>,
}

/// Makes a platform with its first lifecycle record. Asks nobody for permission.
pub(super) async fn found(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    founding: Founding,
    new: NewPlatform,
) -> Result<Stored<Platform>> {
    let now = uow.now().await?;
    let platform = Platform {
        id: founding.id,
        name: new.name,
        slug: new.slug,
        status: PlatformStatus::Active,
        tier: new.tier,
        cf_account_id: new.cf_account_id,
        repo_name: new.repo_name,
        payment_customer_id: None,
        owner_user_id: founding.owner,
        organization_id: founding.organization,
        cancelled_at: None,
        cancellation_reason: None,
        suspended_at: None,
        suspension_reason: None,
        trial_ends_at: None,
        created_at: now,
        updated_at: now,
        deleted_at: None,
        purging: false,
    };
    let stored = uow.platforms().insert(platform).await;
    let stored = stored.map_err(slug_conflict)?;
    let first = LifecycleRecord {
        id: LifecycleId::generate(now, cx.entropy.as_ref()),
        platform_id: stored.id.clone(),
        from_status: None,
        to_status: stored.status,
        triggered_by: cx.caller.actor_id().to_owned(),
        trigger_type: cx.caller.kind().to_owned(),
        reason: None,
        metadata: json!({ "requestId": cx.request.request_id, "event": "create" }),
        created_at: now,
    };
    uow.lifecycle_records().insert(first).await?;
    let happening = Happening {
        platform_id: Some(stored.id.clone()),
        action: "platform.created",
        entity_id: stored.id.to_string(),
        after: Some(picture(&stored)),
        ..Happening::default()
    };
    audited(cx, uow, happening).await?;
    announce(cx, uow, &stored).await?;
    Ok(stored)
}

/// Tells other services where a platform stands.
pub(super) async fn announce(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &Platform,
) -> Result<()> {
    let payload = json!({
        "platformId": platform.id,
        "status": platform.status,
        "suspended": platform.is_suspended(),
    });
    send(cx, uow, "platform.status", payload).await
}

pub(super) fn slug_taken() -> Error {
    Error::refused(Code::SlugTaken, "The slug belongs to another one.")
}

/// What a write that could not be made means: that the slug is taken, or that the store failed.
pub(super) fn slug_conflict(error: StoreError) -> Error {
    match error {
        StoreError::Conflict { index: "slug", .. } => slug_taken(),
        error => error.into(),
    }
}

/// The platforms the caller reaches, newest first. Operators may ask for deleted ones too.
///
/// # Errors
/// `UNAUTHORIZED`; `FORBIDDEN` without `platform:read`; `INVALID_CURSOR`.
pub async fn list_platforms(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    include_deleted: bool,
    page: &PageRequest,
) -> Result<Page<Stored<Platform>>> {
    cx.caller.signed_in()?;
    let query = match cx.caller.membership() {
        _ if cx.caller.is_operator() => PlatformQuery::All {
            deleted: shows_deleted(cx, include_deleted),
        },
        Some(own) if !own.permissions.allows(Permission::PlatformRead) => {
            return Err(Error::Forbidden);
        }
        Some(own) => PlatformQuery::Of {
            organization_id: own.organization_id.clone(),
            platform_id: own.platform_id.clone(),
        },
        None => return Ok(Page::empty()),
    };
    Ok(uow.platforms().page(&query, page).await?)
}

/// The platform. A deleted one can still be looked at, until it is removed for good.
///
/// # Errors
/// As [`reach`].
pub async fn find_platform(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
) -> Result<Stored<Platform>> {
    reach(cx, uow, Permission::PlatformRead, platform).await
}

/// Changes a platform. A change that changes nothing leaves the record, its version and the audit alone. A status is
/// set from any other one; it needs `platform:manage`.
///
/// # Errors
/// As [`reach`]; `INVALID_STATE` for a platform that is deleted and stays so; `SLUG_TAKEN` when a deleted one comes back
/// and its slug belongs to another one by now.
pub async fn update_platform(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    change: PlatformChange,
) -> Result<Stored<Platform>> {
    let seen = reach(cx, uow, Permission::PlatformUpdate, platform).await?;
    let event = change.status.and_then(|wanted| event_for(&seen, wanted));
    if event.is_some() {
        reach(cx, uow, Permission::PlatformManage, platform).await?;
    }
    let now = uow.now().await?;
    let moved = match event {
        Some(event) => seen.after(event, None, now)?,
        None => seen.clone().into_inner(),
    };
    let mut next = changed(moved.clone(), change);
    let details_change = next != moved;
    if !details_change && event.is_none() {
        return Ok(seen);
    }
    if event.is_none() {
        refuse_deleted(&next)?;
    }
    if seen.status == PlatformStatus::Deleted && next.status != PlatformStatus::Deleted {
        refuse_promised(uow, &seen.slug).await?;
    }
    next.updated_at = now;
    let stored = uow.platforms().replace(&seen, next).await;
    let stored = stored.map_err(slug_conflict)?;
    if let Some(event) = event {
        record_move(cx, uow, &seen, &stored, event, None).await?;
        return Ok(stored);
    }
    let happening = Happening {
        platform_id: Some(stored.id.clone()),
        action: "platform.updated",
        entity_id: stored.id.to_string(),
        before: Some(picture(&seen)),
        after: Some(picture(&stored)),
    };
    audited(cx, uow, happening).await?;
    Ok(stored)
}

fn event_for(platform: &Platform, wanted: PlatformStatus) -> Option<PlatformEvent> {
    match wanted {
        wanted if wanted == platform.status => None,
        PlatformStatus::Active => Some(PlatformEvent::SetActive),
        PlatformStatus::Suspended => Some(PlatformEvent::SetSuspended),
        PlatformStatus::Deleted => Some(PlatformEvent::SetDeleted),
        PlatformStatus::Cancelled => Some(PlatformEvent::Cancel),
    }
}

fn changed(mut platform: Platform, change: PlatformChange) -> Platform {
    if let Some(name) = change.name {
        platform.name = name;
    }
    if let Some(tier) = change.tier {
        platform.tier = tier;
    }
    if let Some(account) = change.cf_account_id {
        platform.cf_account_id = account;
    }
    if let Some(repo) = change.repo_name {
        platform.repo_name = repo;
    }
    platform
}

/// The platform as the audit shows it.
pub(super) fn picture(platform: &Platform) -> Value {
    json!({
        "name": platform.name,
        "slug": platform.slug,
        "status": platform.status,
        "tier": platform.tier,
        "cfAccountId": platform.cf_account_id,
        "repoName": platform.repo_name,
        "ownerUserId": platform.owner_user_id,
        "suspensionReason": platform.suspension_reason,
        "cancellationReason": platform.cancellation_reason,
    })
}
