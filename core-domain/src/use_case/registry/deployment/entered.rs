//! Deployment records as the registry's callers see, enter and move them.

use super::record::{self, key_reused};
use crate::access::PlatformScope;
use crate::kernel::{Context, DeploymentId, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::registry::{
    CreateDeployment, Deployment, DeploymentChange, DeploymentFilter, DeploymentQuery,
};
use crate::use_case::registry::Upserted;

/// Maximum number of deployments of a platform that are compared by their key. Callers have keys of their own, and few choose the same.
const MAX_WITH_KEY: u32 = 100;

/// The newest deployments of a platform.
///
/// # Errors
/// When the store failed.
pub async fn list(
    scope: &PlatformScope<grant::DeploymentRead>,
    uow: &mut dyn UnitOfWork,
    filter: &DeploymentFilter,
) -> Result<Vec<Stored<Deployment>>> {
    let in_flight = filter.status.is_some();
    let query = match &filter.idempotency_key {
        Some(key) => DeploymentQuery::WithKey(key.clone()),
        None => DeploymentQuery::All { in_flight },
    };
    let deployments = scope.records::<Deployment>(uow);
    let mut found = deployments.list(&query, filter.limit).await?;
    found.retain(|deployment| !in_flight || !deployment.status.is_terminal());
    Ok(found)
}

/// A deployment of a platform.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn get(
    scope: &PlatformScope<grant::DeploymentRead>,
    uow: &mut dyn UnitOfWork,
    deployment: &DeploymentId,
) -> Result<Stored<Deployment>> {
    scope.records::<Deployment>(uow).get(deployment).await
}

/// Enters a deployment that something else than the suite makes, unless it was entered before.
///
/// # Errors
/// `IDEMPOTENCY_KEY_REUSED` when another deployment of the platform has the key; `LIMIT_REACHED`.
pub async fn enter(
    cx: &Context,
    scope: &PlatformScope<grant::DeploymentWrite>,
    uow: &mut dyn UnitOfWork,
    command: CreateDeployment,
) -> Result<Upserted<Deployment>> {
    let with_key = DeploymentQuery::WithKey(command.idempotency_key.to_string());
    let deployments = scope.records::<Deployment>(uow);
    let mut known = deployments.list(&with_key, MAX_WITH_KEY).await?;
    if let Some(at) = known.iter().position(|one| one.is_repeated_by(&command)) {
        return Ok(Upserted::existing(known.swap_remove(at)));
    }
    if !known.is_empty() {
        return Err(key_reused());
    }
    let now = uow.now().await?;
    let id = DeploymentId::generate(now, cx.entropy.as_ref());
    let deployment = Deployment::create(id, scope.id(), command, now);
    let stored = record::create(cx, scope.writer(), uow, deployment).await?;
    Ok(Upserted::new(stored))
}

/// Changes a deployment. A job that works on one that was ended here ends as well.
///
/// # Errors
/// `NOT_FOUND`; `INVALID_STATE` for one that has ended, and for a move backwards; `VERSION_CONFLICT`.
pub async fn update(
    cx: &Context,
    scope: &PlatformScope<grant::DeploymentWrite>,
    uow: &mut dyn UnitOfWork,
    deployment: &DeploymentId,
    change: &DeploymentChange,
) -> Result<Stored<Deployment>> {
    record::change(cx, scope.writer(), uow, deployment, change).await
}
