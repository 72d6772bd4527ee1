//! Entities: creates, lists, updates and deletes them, alone or with everything below them.

use super::entity_tree::{
    ancestors_of, ensure_not_suspended, first_descendants_of, insert, not_deleted,
};
use super::feature_state::EndScope;
use super::jobs::{DeletedEntity, RemoveEntity};
use super::limited_object;
use super::provision::record_queued;
use super::removal_plan::{Deletion, ensure_no_children, plan_deletion, resources_of};
use super::{feature_state, resource, workspace_stack};
use crate::access::{Batches, PlatformAccess, PlatformScope, audited, ensure_room_unless_operator};
use crate::billing::usage::LimitedObject;
use crate::kernel::{
    Bounded, Context, EntityId, Error, JobId, ListQuery, Machine, Page, Result, Stored, permission,
};
use crate::port::UnitOfWork;
use crate::registry::{
    CreateEntity, Entity, EntityEvent, EntityFilter, EntityQuery, EntityType, PlacementError,
    Resource, UpdateEntity, child_depth,
};
use crate::use_case::provisioning::enqueue;

/// Creates an entity.
///
/// # Errors
/// - `VALIDATION_ERROR` if a tenant has a parent or a sub-tenant has none.
/// - `NOT_FOUND` if the platform has no such parent.
/// - `SLUG_TAKEN` if a sibling has the slug.
/// - `CONFLICT` if the parent is on the lowest level.
/// - `INVALID_STATE` if the parent or an entity above it is suspended.
/// - `LIMIT_REACHED` if the platform has its maximum number of entities.
/// - `QUOTA_EXCEEDED` if its plan allows no more entities.
pub async fn create(
    cx: &Context,
    scope: &PlatformScope<permission::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    command: CreateEntity,
) -> Result<Stored<Entity>> {
    let parent = match &command.parent_id {
        Some(id) => Some(parent(scope, uow, command.entity_type, id).await?),
        None => None,
    };
    let depth = child_depth(scope.id(), command.entity_type, parent.as_deref())?;
    if let Some(parent) = &parent {
        ensure_not_suspended(scope, uow, parent).await?;
    }
    let existing = EntityQuery::Listed(EntityFilter::default());
    let entities = scope.records::<Entity>(uow);
    let limit = cx.limits.entities_per_platform;
    let message = "The platform has reached its maximum number of entities. Delete one first.";
    ensure_room_unless_operator(cx, entities, &existing, limit, message).await?;
    limited_object::ensure_room(cx, scope, uow, LimitedObject::Entities).await?;
    insert(cx, scope.writer(), uow, depth, command).await
}

/// Returns the parent of a new entity.
async fn parent(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entity_type: EntityType,
    parent: &EntityId,
) -> Result<Stored<Entity>> {
    match not_deleted(scope, uow, parent).await {
        // A tenant must not have a parent at all. That error comes before the missing parent.
        Err(Error::NotFound(_)) if entity_type == EntityType::Tenant => {
            Err(PlacementError::TenantWithParent.into())
        }
        Err(Error::NotFound(_)) => Err(PlacementError::NoSuchParent.into()),
        found => found,
    }
}

/// Deletes an entity. With `cascade`, also deletes the entities below it, their resources and their workspace stacks,
/// and ends their features. A job removes the objects of the resources at the provider.
///
/// # Errors
/// - `NOT_FOUND` if the entity does not exist.
/// - `CONFLICT` without `cascade` if the entity has children, resources, workspace stacks or features in use.
/// - `CONFLICT` with `cascade` if a DNS record points to one of the resources, or belongs to one of the workspace
///   stacks.
/// - `FORBIDDEN` for a cascade if the caller is not an operator.
/// - `LIMIT_REACHED` for a cascade that would remove too many records.
/// - `VERSION_CONFLICT` if `If-Match` does not match.
pub async fn delete(
    cx: &Context,
    scope: &PlatformScope<permission::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    cascade: bool,
) -> Result<()> {
    let Deletion { entities, plan } = plan_deletion(cx, scope, uow, entity, cascade).await?;
    let cx = cx.without_conditions();
    let job = if plan.resources > 0 {
        Some(queue_removal(&cx, scope, uow, entity).await?)
    } else {
        None
    };
    for entity in entities.into_iter().rev() {
        if cascade {
            delete_resources(&cx, scope, uow, &entity, job.as_ref()).await?;
            workspace_stack::remove_all_of(&cx, scope.writer(), uow, &entity.id).await?;
            let ending = EndScope::Entity(entity.id.clone());
            feature_state::end_all(&cx, scope.writer(), uow, ending).await?;
        }
        soft_delete(&cx, scope, uow, entity).await?;
    }
    Ok(())
}

/// Queues the job that removes the objects of the entity's resources at the provider.
async fn queue_removal(
    cx: &Context,
    scope: &PlatformScope<permission::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
) -> Result<JobId> {
    let deleted = DeletedEntity {
        platform_id: scope.id().clone(),
        entity_id: entity.clone(),
    };
    let job = enqueue::<RemoveEntity>(cx, scope.writer(), uow, &deleted).await?;
    record_queued(cx, scope, uow, &job, "entity.removal_queued").await?;
    Ok(job.id.clone())
}

/// Deletes the records of the entity's resources. `job` removes their objects.
async fn delete_resources(
    cx: &Context,
    scope: &PlatformScope<permission::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &Entity,
    job: Option<&JobId>,
) -> Result<()> {
    let mut resources = Batches::<Resource>::of(resources_of(entity));
    while let Some(batch) = resources.next(scope.records(uow)).await? {
        for resource in batch {
            resource::delete_for(cx, scope, uow, &resource, job).await?;
        }
    }
    Ok(())
}

/// Marks an entity as deleted.
async fn soft_delete(
    cx: &Context,
    scope: &PlatformScope<permission::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    seen: Stored<Entity>,
) -> Result<()> {
    let event = EntityEvent::Delete;
    let next = seen.edit().after(event, uow.now().await?)?;
    audited::replace(cx, scope, uow, &seen, next, event.transition().action).await?;
    Ok(())
}

/// Lists the entities of a platform, newest first. Only operators can include deleted entities.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn list(
    cx: &Context,
    scope: &PlatformScope<permission::EntityRead>,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<EntityFilter>,
) -> Result<Page<Stored<Entity>>> {
    let listed = EntityQuery::Listed(EntityFilter {
        include_deleted: query.filter.include_deleted && cx.caller.is_operator(),
        ..query.filter
    });
    scope
        .records::<Entity>(uow)
        .page(&listed, &query.page())
        .await
}

/// Returns an entity.
///
/// # Errors
/// `NOT_FOUND` if the entity does not exist or is deleted.
pub async fn get(
    scope: &PlatformScope<permission::EntityRead>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
) -> Result<Stored<Entity>> {
    not_deleted(scope, uow, entity).await
}

/// Returns the ancestors of an entity, the root first, without the entity itself.
///
/// # Errors
/// `NOT_FOUND` if the entity does not exist.
pub async fn ancestors(
    scope: &PlatformScope<permission::EntityRead>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
) -> Result<Vec<Stored<Entity>>> {
    not_deleted(scope, uow, entity).await?;
    ancestors_of(scope, uow, entity).await
}

/// Returns the descendants of an entity that are not deleted, in breadth-first order, without the entity itself. The
/// result is truncated if it exceeds the byte budget of a page.
///
/// # Errors
/// `NOT_FOUND` if the entity does not exist.
pub async fn descendants(
    scope: &PlatformScope<permission::EntityRead>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
) -> Result<Bounded<Stored<Entity>>> {
    not_deleted(scope, uow, entity).await?;
    first_descendants_of(scope, uow, entity).await
}

/// Updates an entity.
///
/// # Errors
/// - `NOT_FOUND` if the entity does not exist.
/// - `INVALID_STATE` if the status cannot change to the new one.
/// - `CONFLICT` if the new status is `deleted` and the entity has children, resources, workspace stacks or features in
///   use.
/// - `VERSION_CONFLICT` if `If-Match` does not match.
pub async fn update(
    cx: &Context,
    scope: &PlatformScope<permission::EntityWrite>,
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
        action = event.transition().action;
    }
    command.apply_to(&mut next);
    audited::replace(cx, scope, uow, &seen, next, action).await
}
