//! Deleting resources' entries.

use super::rules::{ensure_not_needed, not_deleted};
use crate::access::{Covers, PlatformScope, audited};
use crate::kernel::{Context, Machine, PlatformOwned, ResourceId, Result, Stored, grant};
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
    let seen = not_deleted(scope, uow, resource).await?;
    ensure_not_needed(scope, uow, &seen).await?;
    soft_delete(cx, scope, uow, &seen).await
}

/// Marks an entry deleted.
pub(in crate::use_case::registry) async fn soft_delete(
    cx: &Context,
    scope: &impl Covers<PlatformOwned>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<Resource>,
) -> Result<()> {
    let event = ResourceEvent::Delete;
    let next = seen.edit().after(event, uow.now().await?)?;
    audited::replace(cx, scope, uow, seen, next, event.of_event().action).await?;
    Ok(())
}
