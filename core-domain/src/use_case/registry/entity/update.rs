//! Changing entities.

use super::tree::{ensure_no_children, not_deleted};
use crate::access::{PlatformScope, audited};
use crate::kernel::{Context, EntityId, Machine, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::registry::{Entity, EntityEvent, UpdateEntity};

/// Changes an entity.
///
/// # Errors
/// `NOT_FOUND`; `INVALID_STATE`; `CONFLICT` when it is to be deleted and something stands below it; `VERSION_CONFLICT`.
pub async fn update(
    cx: &Context,
    scope: &PlatformScope<grant::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    command: UpdateEntity,
) -> Result<Stored<Entity>> {
    let seen = not_deleted(scope, uow, entity).await?;
    let (mut next, mut action) = (seen.edit(), "entity.updated");
    if let Some(status) = command.status
        && let Some(event) = EntityEvent::between(seen.status, status)?
    {
        if event == EntityEvent::Delete {
            ensure_no_children(scope, uow, &seen).await?;
        }
        next = next.after(event, uow.now().await?)?;
        action = event.of_event().action;
    }
    command.apply_to(&mut next);
    audited::replace(cx, scope, uow, &seen, next, action).await
}
