//! What every new platform and every change of its status leaves: a lifecycle record and a message to others.

use serde_json::json;

use crate::access::{Covers, audited, ensure_room_unless_operator, unaudited, unowned};
use crate::kernel::{Context, LifecycleId, PlatformId, Reason, Result, Stored, Unowned};
use crate::port::UnitOfWork;
use crate::registry::{
    CreatePlatform, LifecycleRecord, Platform, PlatformEvent, PlatformOwner, PlatformQuery,
    PlatformStatus,
};
use crate::use_case::registry::slug::slug_conflict;
use crate::use_case::shared::send;

/// Creates a platform with its first lifecycle record.
///
/// # Errors
/// `SLUG_TAKEN`; `LIMIT_REACHED` for an organization with as many platforms as it may have.
pub(in crate::use_case::registry) async fn insert_platform(
    cx: &Context,
    scope: &impl Covers<Unowned>,
    uow: &mut dyn UnitOfWork,
    id: PlatformId,
    owner: PlatformOwner,
    command: CreatePlatform,
) -> Result<Stored<Platform>> {
    if let Some(organization) = &owner.organization_id {
        let existing = PlatformQuery::Of(organization.clone());
        let limit = cx.limits.platforms_per_organization;
        let message = "The organization has as many platforms as it may have. Delete one first.";
        ensure_room_unless_operator::<Platform>(cx, unowned(uow), &existing, limit, message)
            .await?;
    }
    let now = uow.now().await?;
    let platform = Platform::create(id, owner, command, now);
    let stored = audited::insert(cx, scope, uow, platform, "platform.created").await;
    let stored = stored.map_err(slug_conflict)?;
    record_lifecycle(cx, uow, &stored, None, None, None).await?;
    notify(cx, uow, &stored).await?;
    Ok(stored)
}

/// Keeps a change of a platform's status.
pub(super) async fn record_lifecycle(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    after: &Platform,
    from: Option<PlatformStatus>,
    event: Option<PlatformEvent>,
    reason: Option<&Reason>,
) -> Result<()> {
    let now = uow.now().await?;
    let event = event.map_or("create", PlatformEvent::as_str);
    let record = LifecycleRecord {
        id: LifecycleId::generate(now, cx.entropy.as_ref()),
        platform_id: after.id.clone(),
        from_status: from,
        to_status: after.status,
        triggered_by: cx.caller.actor_id().to_owned(),
        trigger_type: cx.caller.kind().to_owned(),
        reason: reason.cloned(),
        metadata: json!({ "requestId": cx.request.request_id, "event": event }),
        created_at: now,
    };
    unaudited::append(uow, record).await
}

/// Tells other services where a platform stands.
pub(super) async fn notify(
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
