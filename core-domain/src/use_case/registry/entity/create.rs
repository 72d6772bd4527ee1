//! Creating entities.

use super::tree::{ensure_not_suspended, not_deleted};
use crate::access::{
    PlatformAccess, PlatformScope, PlatformWriter, audited, ensure_room_unless_operator,
};
use crate::kernel::{Context, EntityId, Error, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::registry::{
    CreateEntity, Entity, EntityFilter, EntityQuery, EntityType, PlacementError, child_depth,
};
use crate::use_case::registry::slug::slug_conflict;

/// Creates an entity.
///
/// # Errors
/// `VALIDATION_ERROR` for a tenant with or a sub-tenant without a parent; `NOT_FOUND` for a parent that is not of this
/// platform; `SLUG_TAKEN` by a sibling; `CONFLICT` below the last level; `INVALID_STATE` below a suspended entity;
/// `LIMIT_REACHED`.
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
    let message = "The platform has as many entities as it may have. Delete one first.";
    ensure_room_unless_operator(cx, entities, &existing, limit, message).await?;
    insert(cx, scope.writer(), uow, depth, command).await
}

async fn parent(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entity_type: EntityType,
    parent: &EntityId,
) -> Result<Stored<Entity>> {
    match not_deleted(scope, uow, parent).await {
        // What is wrong with the request itself is said first.
        Err(Error::NotFound(_)) if entity_type == EntityType::Tenant => {
            Err(PlacementError::TenantWithParent.into())
        }
        Err(Error::NotFound(_)) => Err(PlacementError::NoSuchParent.into()),
        found => found,
    }
}

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

/// The platform's own tenant, which its infrastructure belongs to; created when there is no tenant at all.
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
