//! Removing old builds, lifecycle records and deployments.

use std::time::Duration;

use crate::access::{SystemScope, unaudited};
use crate::kernel::{DeploymentId, Result, Timestamp};
use crate::port::UnitOfWork;
use crate::registry::{
    Build, BuildQuery, Deployment, DeploymentQuery, DeploymentStatus, LifecycleQuery,
    LifecycleRecord,
};
use crate::use_case::shared::MAX_SLICE;

/// Removes at most `limit` builds that were last changed longer ago than `retention`, oldest first. Returns the number of
/// removed builds; 0 means that none is left.
///
/// # Errors
/// Only those of the store.
pub async fn remove_old_builds(
    uow: &mut dyn UnitOfWork,
    retention: Duration,
    limit: u32,
) -> Result<u64> {
    let old = BuildQuery::UnchangedSince(uow.now().await?.minus(retention));
    let builds = SystemScope::new().records::<Build>(uow);
    builds.remove_first(&old, limit.min(MAX_SLICE)).await
}

/// Removes at most `limit` lifecycle records that are older than `retention`, oldest first. Returns the number of removed
/// records; 0 means that none is left.
///
/// # Errors
/// Only those of the store.
pub async fn remove_old_lifecycle_records(
    uow: &mut dyn UnitOfWork,
    retention: Duration,
    limit: u32,
) -> Result<u64> {
    let old = LifecycleQuery::CreatedBefore(uow.now().await?.minus(retention));
    let records = SystemScope::new().records::<LifecycleRecord>(uow);
    records.remove_first(&old, limit.min(MAX_SLICE)).await
}

/// The position after a deployment in the order of their creation.
pub type DeploymentPosition = (Timestamp, DeploymentId);

/// The result of [`remove_old_deployments`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldDeployments {
    /// Number of deployments that were examined; 0 means that none is left.
    pub examined: u64,
    /// The position after the last examined deployment; `None` if there was none.
    pub position: Option<DeploymentPosition>,
}

/// Examines at most `limit` deployments that were created longer ago than `retention`, oldest first after a position.
/// Removes those that have ended and that nothing needs. A deployment stays if it is pinned, if it is live on its branch,
/// or if another deployment has its content.
///
/// # Errors
/// Only those of the store.
pub async fn remove_old_deployments(
    uow: &mut dyn UnitOfWork,
    retention: Duration,
    after: Option<DeploymentPosition>,
    limit: u32,
) -> Result<OldDeployments> {
    let old = DeploymentQuery::Ended {
        before: uow.now().await?.minus(retention),
        after,
    };
    let deployments = SystemScope::new().records::<Deployment>(uow);
    let deployments = deployments.list(&old, limit.min(MAX_SLICE)).await?;
    let mut result = OldDeployments {
        examined: 0,
        position: None,
    };
    for deployment in deployments {
        result.examined += 1;
        result.position = Some((deployment.created_at, deployment.id.clone()));
        if is_needed(uow, &deployment).await? {
            continue;
        }
        unaudited::remove(uow, &deployment).await?;
    }
    Ok(result)
}

/// Returns whether the deployment, which has ended, is live or pinned, or has the content of another one.
async fn is_needed(uow: &mut dyn UnitOfWork, deployment: &Deployment) -> Result<bool> {
    if deployment.is_pinned() {
        return Ok(true);
    }
    if deployment.status != DeploymentStatus::Active {
        return Ok(false);
    }
    let platform = SystemScope::new().platform(uow, &deployment.platform_id);
    if let Some(platform) = platform.await? {
        let live = DeploymentQuery::ActiveOf(deployment.branch.clone());
        let live = platform.records::<Deployment>(uow).first(&live).await?;
        if live.is_some_and(|live| live.id == deployment.id) {
            return Ok(true);
        }
    }
    let copies = DeploymentQuery::CopiesOf(deployment.id.clone());
    let deployments = SystemScope::new().records::<Deployment>(uow);
    Ok(deployments.first(&copies).await?.is_some())
}
