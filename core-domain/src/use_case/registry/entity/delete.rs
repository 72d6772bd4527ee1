//! Deleting entities, one or a whole tree.

use super::tree::{descendants_of, ensure_no_children, not_deleted};
use crate::access::{Batches, PlatformScope, audited, authorize_operator};
use crate::kernel::{Context, EntityId, Machine, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::registry::{Entity, EntityEvent, Resource, ResourceQuery};
use crate::use_case::registry::feature::{self, Ending};
use crate::use_case::registry::{dns, resource, workspace_stack};

/// Deletes an entity; with `cascade` all that stands below it too: entities, their resources' entries and their workspace
/// stacks, and their features end.
///
/// # Errors
/// `NOT_FOUND`; `CONFLICT` when something stands below it, and when a DNS record leads to a resource below it; `FORBIDDEN`
/// for a cascade by anybody but operators; `VERSION_CONFLICT`.
pub async fn delete(
    cx: &Context,
    scope: &PlatformScope<grant::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    cascade: bool,
) -> Result<()> {
    let seen = not_deleted(scope, uow, entity).await?;
    if !cascade {
        ensure_no_children(scope, uow, &seen).await?;
        return soft_delete(cx, scope, uow, seen).await;
    }
    authorize_operator(cx)?;
    cx.check_if_match(&seen)?;
    let mut to_delete = descendants_of(scope, uow, entity).await?;
    to_delete.reverse();
    to_delete.push(seen);
    let cx = cx.consequence();
    for entity in to_delete {
        delete_resources(&cx, scope, uow, &entity).await?;
        workspace_stack::remove_all_of(&cx, scope.writer(), uow, &entity.id).await?;
        let ending = Ending::Entity(entity.id.clone());
        feature::end_all(&cx, scope.writer(), uow, ending).await?;
        soft_delete(&cx, scope, uow, entity).await?;
    }
    Ok(())
}

async fn delete_resources(
    cx: &Context,
    scope: &PlatformScope<grant::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &Entity,
) -> Result<()> {
    dns::ensure_none_leads_into(scope, uow, &entity.id).await?;
    let of_entity = ResourceQuery::OfEntity {
        entity_id: entity.id.clone(),
        deleted: false,
    };
    let mut resources = Batches::<Resource>::of(of_entity);
    while let Some(batch) = resources.next(scope.records(uow)).await? {
        for resource in batch {
            resource::soft_delete(cx, scope, uow, &resource).await?;
        }
    }
    Ok(())
}

async fn soft_delete(
    cx: &Context,
    scope: &PlatformScope<grant::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    seen: Stored<Entity>,
) -> Result<()> {
    let event = EntityEvent::Delete;
    let next = seen.edit().after(event, uow.now().await?)?;
    audited::replace(cx, scope, uow, &seen, next, event.of_event().action).await?;
    Ok(())
}
