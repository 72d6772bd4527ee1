//! Entities: creates, lists, updates and deletes them, alone or with everything below them.

use std::collections::VecDeque;

use serde_json::json;

use super::feature::EndScope;
use super::jobs::{DeletedEntity, RemoveEntity};
use super::provision::record_queued;
use super::removal_plan::RemovalPlan;
use super::slug::slug_conflict;
use super::{dns_record, feature, resource, workspace_stack};
use crate::access::{
    Batches, PlatformAccess, PlatformScope, PlatformWriter, audited, authorize_operator,
    ensure_below, ensure_room_unless_operator,
};
use crate::kernel::{
    Bounded, Code, Context, EntityId, Error, IllegalTransition, JobId, ListQuery, Machine, Page,
    Record, Result, Stored, grant,
};
use crate::port::{Direction, UnitOfWork};
use crate::registry::{
    CreateEntity, Entity, EntityEvent, EntityFilter, EntityQuery, EntityStatus, EntityType,
    FeatureActivation, FeatureActivationQuery, MAX_DEPTH, PlacementError, Resource, ResourceQuery,
    UpdateEntity, WorkspaceStack, WorkspaceStackQuery, child_depth,
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
pub async fn create(
    cx: &Context,
    scope: &PlatformScope<grant::EntityWrite>,
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

/// Inserts an entity at a level of the tree.
async fn insert(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    depth: i64,
    command: CreateEntity,
) -> Result<Stored<Entity>> {
    let now = uow.now().await?;
    let id = EntityId::generate(now, cx.entropy.as_ref());
    let entity = Entity::create(id, scope.id(), depth, command, now);
    let stored = audited::insert(cx, scope, uow, entity, "entity.created").await;
    stored.map_err(slug_conflict)
}

/// Returns the platform's default tenant, which owns its infrastructure: its first tenant. Creates one if the platform
/// has no tenant.
pub(in crate::use_case::registry) async fn default_tenant(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
) -> Result<Stored<Entity>> {
    let first = scope
        .records::<Entity>(uow)
        .first(&EntityQuery::Tenants)
        .await?;
    if let Some(first) = first {
        return Ok(first);
    }
    let command = CreateEntity {
        name: scope.platform().name.clone(),
        slug: scope.platform().slug.clone(),
        entity_type: EntityType::Tenant,
        parent_id: None,
    };
    insert(cx, scope, uow, 1, command).await
}

/// The records that a deletion removes.
#[derive(Debug)]
pub(in crate::use_case::registry) struct Deletion {
    /// The entities from top to bottom.
    entities: Vec<Stored<Entity>>,
    /// The number of records of each kind.
    pub(in crate::use_case::registry) plan: RemovalPlan,
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
    scope: &PlatformScope<grant::EntityWrite>,
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
            feature::end_all(&cx, scope.writer(), uow, ending).await?;
        }
        soft_delete(&cx, scope, uow, entity).await?;
    }
    Ok(())
}

/// Returns the records that a deletion removes, without removing them.
///
/// # Errors
/// Those of [`delete`].
pub(in crate::use_case::registry) async fn plan_deletion(
    cx: &Context,
    scope: &PlatformScope<grant::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    cascade: bool,
) -> Result<Deletion> {
    let seen = not_deleted(scope, uow, entity).await?;
    cx.check_if_match(&seen)?;
    if !cascade {
        ensure_no_children(scope, uow, &seen).await?;
        let plan = RemovalPlan {
            entities: 1,
            ..RemovalPlan::default()
        };
        let entities = vec![seen];
        return Ok(Deletion { entities, plan });
    }
    authorize_operator(cx)?;
    let (mut entities, mut plan) = (Vec::new(), RemovalPlan::default());
    let mut level = VecDeque::from([seen]);
    while let Some(entity) = level.pop_front() {
        add_to(&mut plan, scope, uow, &entity).await?;
        // The pending children are counted too. That bounds the work and the memory for large trees.
        ensure_below_cascade_limit(cx, &plan, level.len())?;
        let mut children = Batches::<Entity>::of(EntityQuery::ChildrenOf(entity.id.clone()));
        while let Some(batch) = children.next(scope.records(uow)).await? {
            level.extend(batch);
            ensure_below_cascade_limit(cx, &plan, level.len())?;
        }
        entities.push(entity);
    }
    Ok(Deletion { entities, plan })
}

/// Adds an entity and its records to the plan. Returns `CONFLICT` if the entity has DNS records.
async fn add_to(
    plan: &mut RemovalPlan,
    scope: &PlatformScope<grant::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &Entity,
) -> Result<()> {
    dns_record::ensure_entity_has_no_dns_records(scope, uow, &entity.id).await?;
    let stacks = WorkspaceStackQuery::of_tenant(&entity.id);
    plan.stacks += scope.records::<WorkspaceStack>(uow).count(&stacks).await?;
    let features = FeatureActivationQuery::OfEntity {
        entity_id: entity.id.clone(),
        in_use: true,
    };
    let features = scope.records::<FeatureActivation>(uow).count(&features);
    plan.features += features.await?;
    let resources = of_entity(entity);
    plan.resources += scope.records::<Resource>(uow).count(&resources).await?;
    plan.entities += 1;
    Ok(())
}

/// Returns `LIMIT_REACHED` for a cascade above the limit. The limit exists because one unit of work removes everything.
fn ensure_below_cascade_limit(cx: &Context, plan: &RemovalPlan, waiting: usize) -> Result<()> {
    let limit = cx.limits.records_per_cascade;
    let count = plan.entities + plan.stacks + plan.features + plan.resources;
    let count = count + u64::try_from(waiting).unwrap_or(u64::MAX);
    let message =
        "The deletion would remove too many records at once. Delete parts of the tree first.";
    ensure_below(count.saturating_sub(1), limit, message)
}

/// Queues the job that removes the objects of the entity's resources at the provider.
async fn queue_removal(
    cx: &Context,
    scope: &PlatformScope<grant::EntityWrite>,
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
    scope: &PlatformScope<grant::EntityWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &Entity,
    job: Option<&JobId>,
) -> Result<()> {
    let mut resources = Batches::<Resource>::of(of_entity(entity));
    while let Some(batch) = resources.next(scope.records(uow)).await? {
        for resource in batch {
            resource::delete_for(cx, scope, uow, &resource, job).await?;
        }
    }
    Ok(())
}

/// Selects the resources of an entity that are not deleted.
fn of_entity(entity: &Entity) -> ResourceQuery {
    ResourceQuery::OfEntity {
        entity_id: entity.id.clone(),
        deleted: false,
    }
}

/// Marks an entity as deleted.
async fn soft_delete(
    cx: &Context,
    scope: &PlatformScope<grant::EntityWrite>,
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
    scope: &PlatformScope<grant::EntityRead>,
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
    scope: &PlatformScope<grant::EntityRead>,
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
    scope: &PlatformScope<grant::EntityRead>,
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
    scope: &PlatformScope<grant::EntityRead>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
) -> Result<Bounded<Stored<Entity>>> {
    not_deleted(scope, uow, entity).await?;
    first_descendants_of(scope, uow, entity).await
}

/// Returns an entity of the platform; `NOT_FOUND` if it does not exist or is deleted.
pub(in crate::use_case::registry) async fn not_deleted(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
) -> Result<Stored<Entity>> {
    let found = scope.records::<Entity>(uow).get(entity).await?;
    if found.status == EntityStatus::Deleted {
        return Err(Error::NotFound(Entity::KIND));
    }
    Ok(found)
}

/// Returns the ancestors of an entity, the root first.
async fn ancestors_of(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
) -> Result<Vec<Stored<Entity>>> {
    walk(scope, uow, entity, Direction::Ancestors).await
}

/// Returns the descendants of an entity that are not deleted, in breadth-first order, up to the byte budget of a page.
async fn first_descendants_of(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
) -> Result<Bounded<Stored<Entity>>> {
    let entities = scope.records::<Entity>(uow);
    let walk = entities.walk_bounded(entity, Direction::Descendants, depth());
    let mut below = walk.await?;
    below.items.retain(|e| e.status != EntityStatus::Deleted);
    Ok(below)
}

/// Returns the maximum depth of the tree.
fn depth() -> u32 {
    u32::try_from(MAX_DEPTH).unwrap_or(u32::MAX)
}

/// Returns the ancestors or descendants of an entity.
async fn walk(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    direction: Direction,
) -> Result<Vec<Stored<Entity>>> {
    let entities = scope.records::<Entity>(uow);
    entities.walk(entity, direction, depth()).await
}

/// Returns `INVALID_STATE` if the entity or one of its ancestors is suspended. Nothing can be added to such an entity.
pub(in crate::use_case::registry) async fn ensure_not_suspended(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entity: &Entity,
) -> Result<()> {
    let above = ancestors_of(scope, uow, &entity.id).await?;
    let suspended = |e: &Entity| e.status == EntityStatus::Suspended;
    if suspended(entity) || above.iter().any(|e| suspended(e)) {
        let illegal = IllegalTransition::new(EntityStatus::Suspended, [EntityStatus::Active]);
        return Err(illegal.into());
    }
    Ok(())
}

/// Returns `CONFLICT` if the entity has children, resources, workspace stacks or features in use.
async fn ensure_no_children(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entity: &Entity,
) -> Result<()> {
    let children = EntityQuery::ChildrenOf(entity.id.clone());
    let children = scope.records::<Entity>(uow).count(&children).await?;
    let resources = ResourceQuery::OfEntity {
        entity_id: entity.id.clone(),
        deleted: false,
    };
    let resources = scope.records::<Resource>(uow).count(&resources).await?;
    let stacks = WorkspaceStackQuery::of_tenant(&entity.id);
    let stacks = scope.records::<WorkspaceStack>(uow).count(&stacks).await?;
    let features = FeatureActivationQuery::OfEntity {
        entity_id: entity.id.clone(),
        in_use: true,
    };
    let features = scope
        .records::<FeatureActivation>(uow)
        .count(&features)
        .await?;
    if children == 0 && resources == 0 && stacks == 0 && features == 0 {
        return Ok(());
    }
    Err(Error::Refused {
        code: Code::Conflict,
        message: "This entity still has child entities, resources, workspace stacks or features. \
                  Delete or deactivate them first."
            .to_owned(),
        details: json!({
            "children": children, "resources": resources, "stacks": stacks, "features": features,
        }),
    })
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
        action = event.transition().action;
    }
    command.apply_to(&mut next);
    audited::replace(cx, scope, uow, &seen, next, action).await
}
