//! Deployment records.

use core_domain::access::PlatformScope;
use core_domain::kernel::{Code, DeploymentId, PlatformId, Result, Stored, grant};
use core_domain::port::UnitOfWork;
use core_domain::registry::{CreateDeployment, Deployment, DeploymentChange, DeploymentFilter};
use core_domain::use_case::registry::deployment;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use super::upserted;
use crate::kernel::{Cx, Endpoint, Input, Output, Versioned, get, patch, post};

const ALL: &str = "/api/v1/platforms/{platformId}/deployments";
const ONE: &str = "/api/v1/platforms/{platformId}/deployments/{deploymentId}";

type Reads = PlatformScope<grant::DeploymentRead>;
type Writes = PlatformScope<grant::DeploymentWrite>;
type OfPlatform = (PlatformId,);
type One = (PlatformId, DeploymentId);

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get(ALL, "listDeploymentRecords")
            .summary("Lists a platform's newest deployments.")
            .reads(list),
        post(ALL, "createDeploymentRecord")
            .summary("Enters a deployment that something else than the suite makes.")
            .success(&[StatusCode::CREATED, StatusCode::OK])
            .refuses(&[Code::IdempotencyKeyReused, Code::LimitReached])
            .writes(create),
        get(ONE, "getDeploymentRecord")
            .summary("Shows a deployment.")
            .reads(show),
        patch(ONE, "updateDeploymentRecord")
            .summary("Changes a deployment that has not ended.")
            .if_match()
            .refuses(&[Code::InvalidState])
            .writes(update),
    ]
}

/// The newest deployments.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct Deployments {
    /// The records, newest first.
    deployments: Vec<Deployment>,
}

async fn list(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<OfPlatform, DeploymentFilter>,
) -> Result<Output<Deployments>> {
    let found = deployment::list(&scope, uow, &input.query).await?;
    let deployments = found.into_iter().map(Stored::into_inner).collect();
    Ok(Output::new(Deployments { deployments }))
}

async fn create(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<OfPlatform, (), CreateDeployment>,
) -> Result<Versioned<Deployment>> {
    let entered = deployment::enter(cx, &scope, uow, input.body).await?;
    Ok(upserted::answer(&entered, entered.record.edit()))
}

async fn show(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<One>,
) -> Result<Stored<Deployment>> {
    deployment::get(&scope, uow, &input.path.1).await
}

async fn update(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<One, (), DeploymentChange>,
) -> Result<Stored<Deployment>> {
    deployment::update(cx, &scope, uow, &input.path.1, &input.body).await
}
