//! Deleting resources' entries.

use super::rules::{ensure_not_needed, not_deleted};
use crate::access::{Covers, PlatformScope, audited};
use crate::kernel::{Context, JobId, Machine, PlatformOwned, ResourceId, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::registry::{Resource, ResourceEvent};

/// Deletes an entry.
///
/// # Errors
/// `NOT_FOUND`, also the second time; `CONFLICT` while a DNS record leads to it or a feature runs as it;
/// `VERSION_CONFLICT`.
pub async fn delete(
    cx: &Context,
    scope: &PlatformScope<grant::ResourceWrite>,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<()> {
    let seen = deletable(cx, scope, uow, resource).await?;
    soft_delete(cx, scope, uow, &seen).await
}

/// Returns the entry, provided that [`delete`] would delete it.
///
/// # Errors
/// As [`delete`].
pub(in crate::use_case::registry) async fn deletable(
    cx: &Context,
    scope: &PlatformScope<grant::ResourceWrite>,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<Stored<Resource>> {
    let seen = not_deleted(scope, uow, resource).await?;
    cx.check_if_match(&seen)?;
    ensure_not_needed(scope, uow, &seen).await?;
    Ok(seen)
}

/// Marks an entry deleted.
pub(in crate::use_case::registry) async fn soft_delete(
    cx: &Context,
    scope: &impl Covers<PlatformOwned>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Resource>,
) -> Result<()> {
    delete_for(cx, scope, uow, seen, None).await
}

/// As [`soft_delete`], for an entry whose object `job` removes.
pub(in crate::use_case::registry) async fn delete_for(
    cx: &Context,
    scope: &impl Covers<PlatformOwned>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Resource>,
    job: Option<&JobId>,
) -> Result<()> {
    let event = ResourceEvent::Delete;
    let mut next = seen.edit().after(event, uow.now().await?)?;
    next.removal_job_id = job.cloned();
    audited::replace(cx, scope, uow, seen, next, event.of_event().action).await?;
    Ok(())
}
