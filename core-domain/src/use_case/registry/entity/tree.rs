//! Where an entity stands in its tree.

use serde_json::json;

use crate::access::PlatformAccess;
use crate::kernel::{Bounded, Code, EntityId, Error, IllegalMove, Record, Result, Stored};
use crate::port::{Direction, UnitOfWork};
use crate::registry::{
    Entity, EntityQuery, EntityStatus, FeatureActivation, FeatureActivationQuery, MAX_DEPTH,
    Resource, ResourceQuery, WorkspaceStack, WorkspaceStackQuery,
};

/// An entity of the platform that is not deleted.
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

/// The entities above one, the root first.
pub(super) async fn ancestors_of(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
) -> Result<Vec<Stored<Entity>>> {
    walk(scope, uow, entity, Direction::Ancestors).await
}

/// The entities below one that are not deleted, breadth first: as many as the byte budget of a page allows.
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

fn depth() -> u32 {
    u32::try_from(MAX_DEPTH).unwrap_or(u32::MAX)
}

async fn walk(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    direction: Direction,
) -> Result<Vec<Stored<Entity>>> {
    let entities = scope.records::<Entity>(uow);
    entities.walk(entity, direction, depth()).await
}

/// Refuses what would be added to an entity that is suspended, or stands below one that is.
pub(in crate::use_case::registry) async fn ensure_not_suspended(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entity: &Entity,
) -> Result<()> {
    let above = ancestors_of(scope, uow, &entity.id).await?;
    let suspended = |e: &Entity| e.status == EntityStatus::Suspended;
    if suspended(entity) || above.iter().any(|e| suspended(e)) {
        let illegal = IllegalMove::new(EntityStatus::Suspended, [EntityStatus::Active]);
        return Err(illegal.into());
    }
    Ok(())
}

/// Refuses when entities, resources or workspace stacks stand below the entity, or features of it are in use.
pub(super) async fn ensure_no_children(
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
        message: "Entities, resources, workspace stacks or features live below this one."
            .to_owned(),
        details: json!({
            "children": children, "resources": resources, "stacks": stacks, "features": features,
        }),
    })
}
