//! Making, finding and changing entities.

use serde_json::{Value, json};

use super::access::{reach, reach_living, shows_deleted};
use super::platforms::slug_conflict;
use crate::kernel::{
    Context, EntityId, Error, Name, Page, PageRequest, Permission, PlatformId, Result, Slug,
};
use crate::port::{Direction, Record, Stored, UnitOfWork};
use crate::registry::{
    ENTITY_MOVES, Entity, EntityQuery, EntityStatus, EntityType, MAX_DEPTH, Platform, allowed,
    place,
};
use crate::shared::{Happening, audited};

/// What a new entity is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewEntity {
    /// What people call it.
    pub name: Name,
    /// Its name in addresses.
    pub slug: Slug,
    /// What kind it is.
    pub entity_type: EntityType,
    /// The entity above it.
    pub parent_id: Option<EntityId>,
}

/// What changes about an entity; `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntityChange {
    /// What people call it.
    pub name: Option<Name>,
    /// Where it stands. `deleted` is [`super::delete_entity`].
    pub status: Option<EntityStatus>,
}

/// The entities of a platform, newest first.
///
/// # Errors
/// As [`reach`] with `entity:read`; `INVALID_CURSOR`.
pub async fn list_entities(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    entity_type: Option<EntityType>,
    include_deleted: bool,
    page: &PageRequest,
) -> Result<Page<Stored<Entity>>> {
    reach(cx, uow, Permission::EntityRead, platform).await?;
    let query = EntityQuery::OfPlatform {
        platform_id: platform.clone(),
        entity_type,
        deleted: shows_deleted(cx, include_deleted),
    };
    Ok(uow.entities().page(&query, page).await?)
}

/// An entity of a platform that is not deleted.
///
/// # Errors
/// As [`reach`] with `entity:read`; `NOT_FOUND`.
pub async fn find_entity(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    entity: &EntityId,
) -> Result<Stored<Entity>> {
    reach(cx, uow, Permission::EntityRead, platform).await?;
    living_entity(uow, platform, entity).await
}

pub(super) async fn living_entity(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    entity: &EntityId,
) -> Result<Stored<Entity>> {
    let found = uow.entities().get(entity.as_str()).await?;
    found
        .filter(|e| e.platform_id == *platform && e.status != EntityStatus::Deleted)
        .ok_or(Error::NotFound(Entity::KIND))
}

/// Makes an entity.
///
/// # Errors
/// As [`reach_living`] with `entity:write`; `VALIDATION_ERROR` for a tenant with or a sub-tenant without a parent;
/// `NOT_FOUND` for a parent that is not of this platform; `SLUG_TAKEN` by a sibling; `CONFLICT` below the last level;
/// `INVALID_STATE` below a suspended entity.
pub async fn create_entity(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    new: NewEntity,
) -> Result<Stored<Entity>> {
    reach_living(cx, uow, Permission::EntityWrite, platform).await?;
    let parent = match &new.parent_id {
        Some(id) => Some(parent_of(uow, platform, new.entity_type, id).await?),
        None => None,
    };
    let depth = place(platform, new.entity_type, parent.as_deref())?;
    if let Some(parent) = &parent {
        in_use(uow, parent).await?;
    }
    enter(cx, uow, platform, depth, new).await
}

async fn parent_of(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    entity_type: EntityType,
    parent: &EntityId,
) -> Result<Stored<Entity>> {
    let found = living_entity(uow, platform, parent).await;
    match found {
        // What is wrong with the request itself is said first.
        Err(Error::NotFound(_)) if entity_type == EntityType::Tenant => {
            Err(crate::registry::Misplaced::TenantWithParent.into())
        }
        Err(Error::NotFound(_)) => Err(crate::registry::Misplaced::NoSuchParent.into()),
        found => found,
    }
}

async fn enter(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    depth: i64,
    new: NewEntity,
) -> Result<Stored<Entity>> {
    let now = uow.now().await?;
    let entity = Entity {
        id: EntityId::generate(now, cx.entropy.as_ref()),
        platform_id: platform.clone(),
        parent_id: new.parent_id,
        depth,
        entity_type: new.entity_type,
        name: new.name,
        slug: new.slug,
        status: EntityStatus::Active,
        created_at: now,
        updated_at: now,
        deleted_at: None,
    };
    let stored = uow.entities().insert(entity).await.map_err(slug_conflict)?;
    let after = Some(picture(&stored));
    audit(cx, uow, &stored, "entity.created", None, after).await?;
    Ok(stored)
}

/// The platform's own tenant, which its infrastructure belongs to; made when there is no tenant at all. Asks nobody for
/// permission.
pub(super) async fn default_tenant(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &Platform,
) -> Result<Stored<Entity>> {
    let tenants = EntityQuery::TenantsOf(platform.id.clone());
    if let Some(first) = uow.entities().first(&tenants).await? {
        return Ok(first);
    }
    let new = NewEntity {
        name: platform.name.clone(),
        slug: platform.slug.clone(),
        entity_type: EntityType::Tenant,
        parent_id: None,
    };
    enter(cx, uow, &platform.id, 1, new).await
}

/// Refuses what would be added to an entity that is suspended, or stands below one that is.
pub(super) async fn in_use(uow: &mut dyn UnitOfWork, entity: &Entity) -> Result<()> {
    let above = ancestors_of(uow, &entity.id).await?;
    let suspended = |e: &Entity| e.status == EntityStatus::Suspended;
    if suspended(entity) || above.iter().any(|e| suspended(e)) {
        return Err(Error::InvalidState {
            status: EntityStatus::Suspended.as_str(),
            allowed_from: vec![EntityStatus::Active.as_str()],
        });
    }
    Ok(())
}

/// Changes an entity. A change that changes nothing leaves the record, its version and the audit alone.
///
/// # Errors
/// As [`reach_living`] with `entity:write`; `NOT_FOUND`; `INVALID_STATE`; `CONFLICT` when it is to be deleted and
/// something lives below it.
pub async fn update_entity(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    entity: &EntityId,
    change: EntityChange,
) -> Result<Stored<Entity>> {
    reach_living(cx, uow, Permission::EntityWrite, platform).await?;
    let seen = living_entity(uow, platform, entity).await?;
    let status = change.status.unwrap_or(seen.status);
    allowed(ENTITY_MOVES, seen.status, status, EntityStatus::as_str)?;
    let mut next = seen.clone().into_inner();
    next.name = change.name.unwrap_or(next.name);
    next.status = status;
    if next == *seen {
        return Ok(seen);
    }
    next.updated_at = uow.now().await?;
    if status == EntityStatus::Deleted {
        super::entity_delete::refuse_if_lived_in(uow, &seen).await?;
        next.deleted_at = Some(next.updated_at);
    }
    let stored = uow.entities().replace(&seen, next).await?;
    let action = match status {
        status if status == seen.status => "entity.updated",
        EntityStatus::Active => "entity.activated",
        EntityStatus::Suspended => "entity.suspended",
        EntityStatus::Deleted => "entity.deleted",
    };
    let (before, after) = (Some(picture(&seen)), Some(picture(&stored)));
    audit(cx, uow, &stored, action, before, after).await?;
    Ok(stored)
}

/// The entities above one, the root first, without itself.
///
/// # Errors
/// As [`find_entity`].
pub async fn ancestors(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    entity: &EntityId,
) -> Result<Vec<Stored<Entity>>> {
    find_entity(cx, uow, platform, entity).await?;
    ancestors_of(uow, entity).await
}

async fn ancestors_of(uow: &mut dyn UnitOfWork, entity: &EntityId) -> Result<Vec<Stored<Entity>>> {
    let depth = u32::try_from(MAX_DEPTH).unwrap_or(u32::MAX);
    Ok(uow
        .entities()
        .walk(entity.as_str(), Direction::Ancestors, depth)
        .await?)
}

/// The entities below one that are not deleted, breadth first, without itself.
///
/// # Errors
/// As [`find_entity`].
pub async fn descendants(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    entity: &EntityId,
) -> Result<Vec<Stored<Entity>>> {
    find_entity(cx, uow, platform, entity).await?;
    descendants_of(uow, entity).await
}

pub(super) async fn descendants_of(
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
) -> Result<Vec<Stored<Entity>>> {
    let depth = u32::try_from(MAX_DEPTH).unwrap_or(u32::MAX);
    let mut below = uow
        .entities()
        .walk(entity.as_str(), Direction::Descendants, depth)
        .await?;
    below.retain(|e| e.status != EntityStatus::Deleted);
    Ok(below)
}

pub(super) async fn audit(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    entity: &Entity,
    action: &'static str,
    before: Option<Value>,
    after: Option<Value>,
) -> Result<()> {
    let happening = Happening {
        platform_id: Some(entity.platform_id.clone()),
        action,
        entity_id: entity.id.to_string(),
        before,
        after,
    };
    audited(cx, uow, happening).await
}

/// The entity as the audit shows it.
pub(super) fn picture(entity: &Entity) -> Value {
    json!({
        "name": entity.name,
        "slug": entity.slug,
        "type": entity.entity_type,
        "parentId": entity.parent_id,
        "status": entity.status,
    })
}
