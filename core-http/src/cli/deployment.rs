//! The endpoint that returns the status of a deployment.

use core_domain::access::PlatformScope;
use core_domain::kernel::{DeploymentId, PlatformId, Result, Stored, UnixSeconds, permission};
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
        .summary("Returns the status of a deployment.")
        .description(
            "With `wait`, the response is delayed until the deployment has ended, for at most the \
             given number of seconds. The response then has the status at that time.",
        )
        .waits(show, has_ended),
    ]
}

/// The status of a deployment, as the CLI service returns it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeploymentView {
    /// The id of the deployment.
    deployment_id: DeploymentId,
    /// The status of the deployment.
    status: DeploymentStatus,
    /// The id of the deployment at the provider; `null` before the upload to it.
    cf_deployment_id: Option<String>,
    /// The URL of the deployed site; `null` before it is served.
    url: Option<String>,
    /// The reason for the failure or cancellation; `null` if there is none.
    error_message: Option<String>,
    /// The time at which the work began, in Unix seconds; `null` before.
    started_at: Option<UnixSeconds>,
    /// The time at which the deployment ended, in Unix seconds; `null` before.
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
    scope: PlatformScope<permission::DeploymentRead>,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId, DeploymentId), WaitQuery>,
) -> Result<Versioned<DeploymentView>> {
    let found: Stored<Deployment> = cli::get(&scope, uow, &input.path.1).await?;
    Ok(Versioned::of(&found, found.edit().into()))
}

fn has_ended(answer: &Versioned<DeploymentView>) -> bool {
    answer.body().status.is_terminal()
}
