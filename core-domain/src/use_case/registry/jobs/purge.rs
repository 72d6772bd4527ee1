//! What ends a deprovisioning: deployments are called off, and a platform that was deleted for good goes.

use crate::kernel::{Context, Error, PlatformId, Result};
use crate::port::{Record, UnitOfWork};
use crate::registry::{DeploymentQuery, EntityQuery, LifecycleQuery, Platform, ResourceQuery};
use crate::shared::{Happening, audited};
use crate::use_case::registry::deployments::cancel_deployments;
use crate::use_case::registry::suspension::follow_suspension;

/// Ends the deprovisioning of a platform; `live` tells whether its sites were removed.
pub(super) async fn finish(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    live: bool,
) -> Result<()> {
    if live {
        cancel_deployments(cx, uow, platform, "The platform was deprovisioned.").await?;
    }
    let Some(stored) = uow.platforms().get(platform.as_str()).await? else {
        return Ok(());
    };
    let action = if stored.purging {
        "platform.purged"
    } else {
        "platform.deprovisioned"
    };
    if stored.purging {
        remove_rows(uow, platform).await?;
        follow_suspension(cx, uow, platform, false, None).await?;
    }
    let happening = Happening {
        platform_id: Some(platform.clone()),
        action,
        entity_id: platform.to_string(),
        ..Happening::default()
    };
    audited(cx, uow, happening).await
}

/// Removes every row of the platform but its audit.
async fn remove_rows(uow: &mut dyn UnitOfWork, platform: &PlatformId) -> Result<()> {
    let platform_id = platform.clone();
    let deployments = DeploymentQuery::OfPlatform {
        platform_id: platform_id.clone(),
        in_flight: false,
    };
    uow.deployments().remove_all(&deployments).await?;
    let resources = ResourceQuery::OfPlatform {
        platform_id: platform_id.clone(),
        deleted: true,
    };
    uow.resources().remove_all(&resources).await?;
    let entities = EntityQuery::OfPlatform {
        platform_id: platform_id.clone(),
        entity_type: None,
        deleted: true,
    };
    uow.entities().remove_all(&entities).await?;
    let lifecycle = LifecycleQuery::OfPlatform(platform_id);
    uow.lifecycle_records().remove_all(&lifecycle).await?;
    let stored = uow.platforms().get(platform.as_str()).await?;
    let stored = stored.ok_or(Error::NotFound(Platform::KIND))?;
    uow.platforms().remove(&stored).await?;
    Ok(())
}
