//! The life of a platform: suspending, restoring, cancelling, deleting.

use super::record::{notify, record_lifecycle};
use super::suspension;
use crate::access::{PlatformScope, PlatformWriter, audited, ensure_fresh};
use crate::kernel::{Context, Machine, Reason, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::registry::{Platform, PlatformEvent, PlatformStatus};
use crate::use_case::provisioning::{self, Kinds};
use crate::use_case::registry::jobs::queue_sync;
use crate::use_case::registry::provision;
use crate::use_case::registry::slug::{ensure_not_reserved, slug_conflict};

/// Refuses the platform's callers and holds its jobs.
///
/// # Errors
/// `INVALID_STATE`; `VERSION_CONFLICT`.
pub async fn suspend(
    cx: &Context,
    scope: &PlatformScope<grant::PlatformManage>,
    uow: &mut dyn UnitOfWork,
    reason: Option<&Reason>,
) -> Result<Stored<Platform>> {
    apply(cx, scope.writer(), uow, PlatformEvent::Suspend, reason).await
}

/// Lets a suspended, cancelled or deleted platform be used again. What an operator suspended only an operator restores.
///
/// # Errors
/// `INVALID_STATE`; `SLUG_TAKEN` when a deleted platform comes back and its slug belongs to another one by now;
/// `VERSION_CONFLICT`.
pub async fn restore(
    cx: &Context,
    scope: &PlatformScope<grant::PlatformRestore>,
    uow: &mut dyn UnitOfWork,
    reason: Option<&Reason>,
) -> Result<Stored<Platform>> {
    apply(cx, scope.writer(), uow, PlatformEvent::Restore, reason).await
}

/// Gives a platform up.
///
/// # Errors
/// `INVALID_STATE`; `VERSION_CONFLICT`.
pub async fn cancel(
    cx: &Context,
    scope: &PlatformScope<grant::PlatformManage>,
    uow: &mut dyn UnitOfWork,
    reason: Option<&Reason>,
) -> Result<Stored<Platform>> {
    apply(cx, scope.writer(), uow, PlatformEvent::Cancel, reason).await
}

/// Deletes a platform; it can be restored for 30 days.
///
/// # Errors
/// `INVALID_STATE`, `VERSION_CONFLICT`.
pub async fn delete(
    cx: &Context,
    scope: &PlatformScope<grant::PlatformManage>,
    uow: &mut dyn UnitOfWork,
) -> Result<Stored<Platform>> {
    apply(cx, scope.writer(), uow, PlatformEvent::Delete, None).await
}

/// Deletes a platform that a job created and takes back; tells whether there was something to delete.
pub(in crate::use_case::registry) async fn delete_undone(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
) -> Result<bool> {
    if scope.platform().status == PlatformStatus::Deleted {
        return Ok(false);
    }
    apply(cx, scope, uow, PlatformEvent::Delete, None).await?;
    Ok(true)
}

/// Removes a platform for good, with all it has; it is gone when its job is done. Jobs of the platform that have not
/// ended are cancelled. When the removal has failed, an operator asks for it again.
///
/// # Errors
/// `STEP_UP_REQUIRED`; `INVALID_STATE`; `VERSION_CONFLICT`.
pub async fn hard_delete(
    cx: &Context,
    scope: &PlatformScope<grant::PlatformManage>,
    uow: &mut dyn UnitOfWork,
    kinds: &Kinds,
    reason: Option<&Reason>,
) -> Result<Stored<Platform>> {
    ensure_fresh(cx, uow).await?;
    cx.check_if_match(scope.platform())?;
    if scope.platform().purging && cx.caller.is_operator() {
        let cx = &cx.consequence();
        provision::resume_removal(cx, scope.writer(), uow, kinds).await?;
        return Ok(scope.platform().clone());
    }
    let stored = apply(cx, scope.writer(), uow, PlatformEvent::HardDelete, reason).await?;
    let why = "The platform is being removed for good.";
    // The deprovisioning job cancels the rest. It runs before them.
    let more = provisioning::cancel_some(cx, scope.writer(), uow, kinds, None, why).await?;
    provision::queue_removal(cx, scope.writer(), uow, more).await?;
    Ok(stored)
}

/// Moves a platform and writes what follows: lifecycle record, audit, suspension, message. All of it happens or none.
async fn apply(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    event: PlatformEvent,
    reason: Option<&Reason>,
) -> Result<Stored<Platform>> {
    cx.check_if_match(scope.platform())?;
    let now = uow.now().await?;
    let next = scope.platform().edit().after(event, reason, now)?;
    store(cx, scope, uow, next, event, reason).await
}

/// Stores a platform after an event, and what follows from the event.
pub(super) async fn store(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    next: Platform,
    event: PlatformEvent,
    reason: Option<&Reason>,
) -> Result<Stored<Platform>> {
    let seen = scope.platform();
    if seen.status == PlatformStatus::Deleted && next.status != PlatformStatus::Deleted {
        ensure_not_reserved(uow, &seen.slug).await?;
    }
    let action = event.of_event().action;
    let stored = audited::replace(cx, scope, uow, seen, next, action).await;
    let stored = stored.map_err(slug_conflict)?;
    record_lifecycle(cx, uow, &stored, Some(seen.status), Some(event), reason).await?;
    // Back in use means not suspended, also when the flag was set from outside.
    if seen.is_suspended() != stored.is_suspended() || stored.status == PlatformStatus::Active {
        suspension::follow(cx, scope, uow, stored.is_suspended(), reason).await?;
    }
    let is_deleted = |platform: &Platform| platform.status == PlatformStatus::Deleted;
    let is_other =
        seen.is_suspended() != stored.is_suspended() || is_deleted(seen) != is_deleted(&stored);
    if is_other && !stored.purging {
        queue_sync(cx, scope, uow).await?;
    }
    notify(cx, uow, &stored).await?;
    Ok(stored)
}
