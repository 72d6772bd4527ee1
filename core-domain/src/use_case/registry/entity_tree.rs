//! Finds entities and their relatives in the tree, and creates the default tenant of a platform.

use super::slug::slug_conflict;
use crate::access::{PlatformAccess, PlatformWriter, audited};
use crate::kernel::{Bounded, Context, EntityId, Error, IllegalTransition, Record, Result, Stored};
use crate::port::{Direction, UnitOfWork};
use crate::registry::{CreateEntity, Entity, EntityQuery, EntityStatus, EntityType, MAX_DEPTH};

/// Returns the platform's default tenant, which owns its infrastructure: its first tenant. Creates one if the platform
/// has no tenant.
pub(in crate::use_case::registry) async fn default_tenant(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
) -> Result<Stored<Entity>> {
    if let Some(first) = find_default_tenant(scope, uow).await? {
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

/// Returns the platform's default tenant; `None` if the platform has no tenant.
pub(in crate::use_case::registry) async fn find_default_tenant(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
) -> Result<Option<Stored<Entity>>> {
    let entities = scope.records::<Entity>(uow);
    entities.first(&EntityQuery::Tenants).await
}

/// Inserts an entity at a level of the tree.
pub(super) async fn insert(
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

/// Returns the ancestors of an entity, the root first.
pub(super) async fn ancestors_of(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
) -> Result<Vec<Stored<Entity>>> {
    walk(scope, uow, entity, Direction::Ancestors).await
}

/// Returns the descendants of an entity that are not deleted, in breadth-first order, up to the byte budget of a page.
pub(super) async fn first_descendants_of(
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

/// Returns the maximum depth of the tree.
fn depth() -> u32 {
    u32::try_from(MAX_DEPTH).unwrap_or(u32::MAX)
}
