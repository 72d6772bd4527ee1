//! Looking at a deployment.

use core_domain::access::PlatformScope;
use core_domain::kernel::{DeploymentId, PlatformId, Result, Stored, UnixSeconds, grant};
use core_domain::port::UnitOfWork;
use core_domain::registry::{Deployment, DeploymentStatus};
use core_domain::use_case::cli;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Cx, Endpoint, Input, Versioned, WaitQuery, get};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get(
            "/api/v1/platforms/{platformId}/deployments/{deploymentId}",
            "getDeployment",
        )
        .summary("Shows where a deployment stands; with `wait` once it has ended.")
        .waits(show, has_ended),
    ]
}

/// Where a deployment stands (interface: "CLI service").
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeploymentView {
    deployment_id: DeploymentId,
    status: DeploymentStatus,
    /// Its id at the provider.
    cf_deployment_id: Option<String>,
    /// Where it is served.
    url: Option<String>,
    /// Why it did not work.
    error_message: Option<String>,
    /// When work on it began.
    started_at: Option<UnixSeconds>,
    /// When it ended.
    completed_at: Option<UnixSeconds>,
}

impl From<Deployment> for DeploymentView {
    fn from(deployment: Deployment) -> Self {
        Self {
            deployment_id: deployment.id,
            status: deployment.status,
            cf_deployment_id: deployment.cf_deployment_id,
            url: deployment.url,
            error_message: deployment.error_message,
            started_at: deployment.started_at.map(UnixSeconds),
            completed_at: deployment.completed_at.map(UnixSeconds),
        }
    }
}

async fn show(
    _: &Cx,
    scope: PlatformScope<grant::DeploymentRead>,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId, DeploymentId), WaitQuery>,
) -> Result<Versioned<DeploymentView>> {
    let found: Stored<Deployment> = cli::get(&scope, uow, &input.path.1).await?;
    Ok(Versioned::of(&found, found.edit().into()))
}

fn has_ended(answer: &Versioned<DeploymentView>) -> bool {
    answer.shown().status.is_terminal()
}
