//! What a deletion would remove, without removing it. Whoever may not delete may not ask either; that it was asked is in
//! the audit.

use serde_json::json;

use super::access::{reach, reach_living};
use super::entities::{descendants_of, living_entity};
use super::entity_delete::refuse_if_lived_in;
use super::resources::living_resource;
use crate::kernel::{Context, EntityId, Permission, PlatformId, ResourceId, Result};
use crate::port::UnitOfWork;
use crate::registry::{EntityQuery, PlatformEvent, ResourceQuery};
use crate::shared::{Happening, audited};

/// What would go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovalPlan {
    /// How many entities.
    pub entities: u64,
    /// How many resources.
    pub resources: u64,
}

/// What a deletion of a platform would remove: with [`PlatformEvent::HardDelete`] everything, otherwise nothing that
/// belongs to it.
///
/// # Errors
/// As [`super::move_platform`] with this event.
pub async fn plan_platform_removal(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    event: PlatformEvent,
) -> Result<RemovalPlan> {
    let seen = reach(cx, uow, Permission::PlatformManage, platform).await?;
    let now = uow.now().await?;
    seen.after(event, None, now)?;
    let mut plan = RemovalPlan::default();
    if event == PlatformEvent::HardDelete {
        let entities = EntityQuery::OfPlatform {
            platform_id: platform.clone(),
            entity_type: None,
            deleted: false,
        };
        let resources = ResourceQuery::OfPlatform {
            platform_id: platform.clone(),
            deleted: false,
        };
        plan.entities = uow.entities().count(&entities).await?;
        plan.resources = uow.resources().count(&resources).await?;
    }
    let action = "platform.deletion_planned";
    planned(cx, uow, platform, action, platform.as_str(), plan).await
}

/// What [`super::delete_entity`] would remove.
///
/// # Errors
/// As [`super::delete_entity`].
pub async fn plan_entity_removal(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    entity: &EntityId,
    cascade: bool,
) -> Result<RemovalPlan> {
    reach_living(cx, uow, Permission::EntityWrite, platform).await?;
    let seen = living_entity(uow, platform, entity).await?;
    let mut doomed = vec![entity.clone()];
    if cascade {
        cx.caller.operator()?;
        let below = descendants_of(uow, entity).await?;
        doomed.extend(below.iter().map(|entity| entity.id.clone()));
    } else {
        refuse_if_lived_in(uow, &seen).await?;
    }
    let mut plan = RemovalPlan::default();
    for entity_id in doomed {
        let resources = ResourceQuery::OfEntity {
            entity_id,
            deleted: false,
        };
        plan.entities += 1;
        plan.resources += uow.resources().count(&resources).await?;
    }
    let action = "entity.deletion_planned";
    planned(cx, uow, platform, action, entity.as_str(), plan).await
}

/// What [`super::delete_resource`] would remove: the entry.
///
/// # Errors
/// As [`super::delete_resource`].
pub async fn plan_resource_removal(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    resource: &ResourceId,
) -> Result<RemovalPlan> {
    reach_living(cx, uow, Permission::ResourceWrite, platform).await?;
    living_resource(uow, platform, resource).await?;
    let plan = RemovalPlan {
        entities: 0,
        resources: 1,
    };
    let action = "resource.deletion_planned";
    planned(cx, uow, platform, action, resource.as_str(), plan).await
}

async fn planned(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    action: &'static str,
    thing: &str,
    plan: RemovalPlan,
) -> Result<RemovalPlan> {
    let happening = Happening {
        platform_id: Some(platform.clone()),
        action,
        entity_id: thing.to_owned(),
        before: None,
        after: Some(json!({
            "dryRun": true,
            "entities": plan.entities,
            "resources": plan.resources,
        })),
    };
    audited(cx, uow, happening).await?;
    Ok(plan)
}
