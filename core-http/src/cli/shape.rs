//! The shapes of deployments (interface: "CLI service").

use core_domain::kernel::{DeploymentId, Timestamp};
use core_domain::port::Stored;
use core_domain::registry::{Deployment, DeploymentStatus};
use schemars::JsonSchema;
use serde::Serialize;

/// A deployment that was asked for.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeployShape {
    deployment_id: DeploymentId,
    status: DeploymentStatus,
    /// The pages project it is deployed to.
    project_name: String,
}

impl From<Stored<Deployment>> for DeployShape {
    fn from(stored: Stored<Deployment>) -> Self {
        let deployment = stored.into_inner();
        Self {
            deployment_id: deployment.id,
            status: deployment.status,
            project_name: deployment.project_name,
        }
    }
}

/// Where a deployment stands.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeploymentShape {
    deployment_id: DeploymentId,
    status: DeploymentStatus,
    /// Its id at the provider.
    cf_deployment_id: Option<String>,
    /// Where it is served.
    url: Option<String>,
    /// Why it did not work.
    error_message: Option<String>,
    /// When work on it began, in seconds since 1970.
    started_at: Option<i64>,
    /// When it ended, in seconds since 1970.
    completed_at: Option<i64>,
}

impl From<Stored<Deployment>> for DeploymentShape {
    fn from(stored: Stored<Deployment>) -> Self {
        let deployment = stored.into_inner();
        Self {
            deployment_id: deployment.id,
            status: deployment.status,
            cf_deployment_id: deployment.cf_deployment_id,
            url: deployment.url,
            error_message: deployment.error_message,
            started_at: deployment.started_at.map(Timestamp::seconds),
            completed_at: deployment.completed_at.map(Timestamp::seconds),
        }
    }
}
