//! Changing resources' entries.

use super::rules::{check_job, ensure_not_needed, not_deleted};
use crate::access::{PlatformScope, audited};
use crate::kernel::{Context, JsonText, Machine, Patch, ResourceId, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::registry::{Resource, ResourceEvent, UpdateResource};

/// Changes an entry.
///
/// # Errors
/// `NOT_FOUND`, also for a job of another platform; `INVALID_STATE` for a move that is not in the table; `CONFLICT` when it
/// is to be deleted and a DNS record leads to it or a feature runs as it; `VALIDATION_ERROR` for settings that are too large; `VERSION_CONFLICT`.
pub async fn update(
    cx: &Context,
    scope: &PlatformScope<grant::ResourceWrite>,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
    command: UpdateResource,
) -> Result<Stored<Resource>> {
    let seen = not_deleted(scope, uow, resource).await?;
    let (mut next, mut action) = (seen.edit(), "resource.updated");
    if let Some(status) = command.status
        && let Some(event) = ResourceEvent::said(seen.status, status)?
    {
        if event == ResourceEvent::Delete {
            ensure_not_needed(scope, uow, &seen).await?;
        }
        next = next.after(event, uow.now().await?)?;
        action = event.of_event().action;
    }
    match &command.config {
        Patch::Keep => {}
        Patch::Clear => next.config = JsonText::default(),
        Patch::Set(config) => next.config = config.clone().into(),
    }
    if let Patch::Set(job) = &command.provision_job_id {
        check_job(scope, uow, Some(job)).await?;
    }
    command.apply_to(&mut next);
    audited::replace(cx, scope, uow, &seen, next, action).await
}
