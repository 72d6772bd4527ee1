//! Deployments of a platform: the list, their status, and pinning the live one.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::access::{PlatformAccess, PlatformScope, audited};
use crate::kernel::{
    Code, Context, DeploymentId, Error, ListQuery, Page, Result, Stored, permission,
};
use crate::port::UnitOfWork;
use crate::registry::{Branch, Deployment, DeploymentQuery, DeploymentStatus};
use crate::use_case::registry::deployment;

/// Returns a deployment of the platform.
///
/// # Errors
/// `NOT_FOUND` if the platform has no such deployment.
pub async fn get(
    scope: &PlatformScope<permission::DeploymentRead>,
    uow: &mut dyn UnitOfWork,
    deployment: &DeploymentId,
) -> Result<Stored<Deployment>> {
    deployment::get(scope, uow, deployment).await
}

/// The filter of the list of deployments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct DeploymentListFilter {
    /// Returns only deployments of this branch.
    pub branch: Option<Branch>,
    /// Returns only deployments with this status.
    pub status: Option<DeploymentStatus>,
}

/// A deployment with its place among the others of its branch.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedDeployment {
    /// The deployment.
    pub deployment: Stored<Deployment>,
    /// Whether the deployment is the newest active one of its branch, which visitors see.
    pub is_live: bool,
}

/// Lists the deployments of a platform, newest first.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn list(
    scope: &PlatformScope<permission::DeploymentRead>,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<DeploymentListFilter>,
) -> Result<Page<ListedDeployment>> {
    let wanted = DeploymentQuery::Listed {
        branch: query.filter.branch.clone(),
        status: query.filter.status,
    };
    let deployments = scope.records::<Deployment>(uow);
    let page = deployments.page(&wanted, &query.page()).await?;
    let mut live: BTreeMap<Branch, Option<DeploymentId>> = BTreeMap::new();
    for found in &page.items {
        if found.status == DeploymentStatus::Active && !live.contains_key(&found.branch) {
            let newest = deployment::live(scope, uow, &found.branch).await?;
            live.insert(found.branch.clone(), newest.map(|newest| newest.id.clone()));
        }
    }
    Ok(page.map(|found| ListedDeployment {
        is_live: live
            .get(&found.branch)
            .is_some_and(|id| id.as_ref() == Some(&found.id)),
        deployment: found,
    }))
}

type Creates = PlatformScope<permission::DeploymentCreate>;

/// Pins the live deployment of `production`: it stays live until it is unpinned. Does nothing if it is pinned.
///
/// # Errors
/// - `NOT_FOUND` if the platform has no such deployment.
/// - `INVALID_STATE` if the deployment is not the live one of `production`.
/// - `CONFLICT` while another deployment of `production` is in progress.
pub async fn pin(
    cx: &Context,
    scope: &Creates,
    uow: &mut dyn UnitOfWork,
    id: &DeploymentId,
) -> Result<ListedDeployment> {
    let seen = scope.records::<Deployment>(uow).get(id).await?;
    let production = Branch::production();
    let live = deployment::live(scope, uow, &production).await?;
    if live.is_none_or(|live| live.id != seen.id) {
        return Err(Error::refused(
            Code::InvalidState,
            "Only the live deployment of production can be pinned. Roll back to this deployment first.",
        ));
    }
    ensure_none_in_flight(scope, uow, &production).await?;
    let mut next = seen.edit();
    if next.pinned_at.is_none() {
        next.pinned_at = Some(uow.now().await?);
    }
    let deployment =
        audited::replace(cx, scope.writer(), uow, &seen, next, "deployment.pinned").await?;
    Ok(ListedDeployment {
        deployment,
        is_live: true,
    })
}

/// Unpins a deployment. Does nothing if it is not pinned.
///
/// # Errors
/// `NOT_FOUND` if the platform has no such deployment.
pub async fn unpin(
    cx: &Context,
    scope: &Creates,
    uow: &mut dyn UnitOfWork,
    id: &DeploymentId,
) -> Result<ListedDeployment> {
    let seen = scope.records::<Deployment>(uow).get(id).await?;
    let mut next = seen.edit();
    next.pinned_at = None;
    let action = "deployment.unpinned";
    let deployment = audited::replace(cx, scope.writer(), uow, &seen, next, action).await?;
    let live = deployment::live(scope, uow, &deployment.branch).await?;
    Ok(ListedDeployment {
        is_live: live.is_some_and(|live| live.id == deployment.id),
        deployment,
    })
}

/// Refuses a new deployment of a branch while another one has not ended.
///
/// # Errors
/// `CONFLICT` with the unfinished deployment.
pub(super) async fn ensure_none_in_flight(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    branch: &Branch,
) -> Result<()> {
    match deployment::in_flight_of(scope, uow, branch).await? {
        None => Ok(()),
        Some(other) => Err(in_flight_conflict(&other)),
    }
}

/// Returns the error for a branch that has an unfinished deployment.
pub(super) fn in_flight_conflict(other: &Deployment) -> Error {
    Error::Refused {
        code: Code::Conflict,
        message: "Another deployment of this branch has not ended yet.".to_owned(),
        details: json!({ "deploymentId": other.id, "status": other.status }),
    }
}
