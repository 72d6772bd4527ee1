//! The life of a platform: suspending, restoring, cancelling, deleting.

use serde_json::json;

use super::access::reach;
use super::onboarding::refuse_promised;
use super::platforms::{announce, picture, slug_conflict};
use super::provision::queue_deprovision;
use super::suspension::follow_suspension;
use crate::kernel::{
    Context, LifecycleId, Page, PageRequest, Permission, PlatformId, Reason, Result,
};
use crate::port::{Stored, UnitOfWork};
use crate::registry::{LifecycleQuery, LifecycleRecord, Platform, PlatformEvent, PlatformStatus};
use crate::shared::{Happening, audited};

/// Moves a platform and writes what follows: lifecycle record, audit, suspension, outbox, and for a hard delete the job
/// that removes everything. All of it happens or none.
///
/// # Errors
/// As [`reach`] with `platform:manage`; `INVALID_STATE` when the platform's status does not allow it; `SLUG_TAKEN` when
/// a deleted platform comes back and its slug belongs to another one by now.
pub async fn move_platform(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    event: PlatformEvent,
    reason: Option<&Reason>,
) -> Result<Stored<Platform>> {
    let seen = reach(cx, uow, Permission::PlatformManage, platform).await?;
    let now = uow.now().await?;
    let next = seen.after(event, reason, now)?;
    if seen.status == PlatformStatus::Deleted && next.status != PlatformStatus::Deleted {
        refuse_promised(uow, &seen.slug).await?;
    }
    let stored = uow.platforms().replace(&seen, next).await;
    let stored = stored.map_err(slug_conflict)?;
    record_move(cx, uow, &seen, &stored, event, reason).await?;
    if event == PlatformEvent::HardDelete {
        queue_deprovision(cx, uow, &stored, None).await?;
    }
    Ok(stored)
}

/// Writes what follows from a move.
pub(super) async fn record_move(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    before: &Platform,
    after: &Platform,
    event: PlatformEvent,
    reason: Option<&Reason>,
) -> Result<()> {
    let now = uow.now().await?;
    let record = LifecycleRecord {
        id: LifecycleId::generate(now, cx.entropy.as_ref()),
        platform_id: after.id.clone(),
        from_status: Some(before.status),
        to_status: after.status,
        triggered_by: cx.caller.actor_id().to_owned(),
        trigger_type: cx.caller.kind().to_owned(),
        reason: reason.cloned(),
        metadata: json!({ "requestId": cx.request.request_id, "event": event }),
        created_at: now,
    };
    uow.lifecycle_records().insert(record).await?;
    let happening = Happening {
        platform_id: Some(after.id.clone()),
        action: event.row().action,
        entity_id: after.id.to_string(),
        before: Some(picture(before)),
        after: Some(picture(after)),
    };
    audited(cx, uow, happening).await?;
    // Back in use means not suspended, also when the flag was set from outside.
    if before.is_suspended() != after.is_suspended() || after.status == PlatformStatus::Active {
        follow_suspension(cx, uow, &after.id, after.is_suspended(), reason).await?;
    }
    announce(cx, uow, after).await
}

/// What happened to a platform's status, newest first.
///
/// # Errors
/// As [`reach`] with `platform:read`; `INVALID_CURSOR`.
pub async fn list_lifecycle(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    page: &PageRequest,
) -> Result<Page<Stored<LifecycleRecord>>> {
    reach(cx, uow, Permission::PlatformRead, platform).await?;
    let query = LifecycleQuery::OfPlatform(platform.clone());
    Ok(uow.lifecycle_records().page(&query, page).await?)
}
