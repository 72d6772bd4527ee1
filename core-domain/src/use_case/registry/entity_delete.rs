//! Deleting entities, one or a whole tree.

use serde_json::json;

use super::access::reach_living;
use super::entities::{audit, descendants_of, living_entity, picture};
use super::resources;
use crate::kernel::{Code, Context, EntityId, Error, Permission, PlatformId, Result};
use crate::port::{Stored, UnitOfWork};
use crate::registry::{Entity, EntityQuery, EntityStatus, ResourceQuery};

/// How many rows are read at once.
const BATCH: u32 = 100;

/// Deletes an entity; with `cascade` all that lives below it too: entities and their resources' entries.
///
/// # Errors
/// As [`reach_living`] with `entity:write`; `NOT_FOUND`; `CONFLICT` when something lives below it; `FORBIDDEN` for a
/// cascade by anybody but operators.
pub async fn delete_entity(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    entity: &EntityId,
    cascade: bool,
) -> Result<()> {
    reach_living(cx, uow, Permission::EntityWrite, platform).await?;
    let seen = living_entity(uow, platform, entity).await?;
    if !cascade {
        refuse_if_lived_in(uow, &seen).await?;
        return bury(cx, uow, seen).await;
    }
    cx.caller.operator()?;
    let mut doomed = descendants_of(uow, entity).await?;
    doomed.reverse();
    doomed.push(seen);
    for entity in doomed {
        bury_resources(cx, uow, &entity).await?;
        bury(cx, uow, entity).await?;
    }
    Ok(())
}

/// Refuses when something lives below the entity.
pub(super) async fn refuse_if_lived_in(uow: &mut dyn UnitOfWork, entity: &Entity) -> Result<()> {
    let children = EntityQuery::ChildrenOf(entity.id.clone());
    let children = uow.entities().count(&children).await?;
    let resources = uow.resources().count(&living_of(entity)).await?;
    if children == 0 && resources == 0 {
        return Ok(());
    }
    Err(Error::Refused {
        code: Code::Conflict,
        message: "Entities or resources live below this one.".to_owned(),
        details: json!({ "children": children, "resources": resources }),
    })
}

fn living_of(entity: &Entity) -> ResourceQuery {
    ResourceQuery::OfEntity {
        entity_id: entity.id.clone(),
        deleted: false,
    }
}

async fn bury_resources(cx: &Context, uow: &mut dyn UnitOfWork, entity: &Entity) -> Result<()> {
    loop {
        let batch = uow.resources().list(&living_of(entity), BATCH).await?;
        if batch.is_empty() {
            return Ok(());
        }
        for resource in batch {
            resources::bury(cx, uow, &resource).await?;
        }
    }
}

async fn bury(cx: &Context, uow: &mut dyn UnitOfWork, seen: Stored<Entity>) -> Result<()> {
    let now = uow.now().await?;
    let next = Entity {
        status: EntityStatus::Deleted,
        updated_at: now,
        deleted_at: Some(now),
        ..seen.clone().into_inner()
    };
    let stored = uow.entities().replace(&seen, next).await?;
    let (before, after) = (Some(picture(&seen)), Some(picture(&stored)));
    audit(cx, uow, &stored, "entity.deleted", before, after).await
}
