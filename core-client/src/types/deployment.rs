//! Deployments of sites.

use serde::{Deserialize, Serialize};

use super::open_enum::open_enum;
use super::page::PageQuery;

/// The branch of the live site.
pub const PRODUCTION: &str = "production";

open_enum! {
    /// The status of a deployment.
    pub enum DeploymentStatus {
        /// The deployment waits for its turn.
        Queued = "queued",
        /// The files are being sent to the provider.
        Uploading = "uploading",
        /// The provider has the files and is activating the site.
        Deploying = "deploying",
        /// The provider serves the site. Final status.
        Active = "active",
        /// The deployment failed. Final status.
        Failure = "failure",
        /// The deployment was canceled. Final status.
        Canceled = "canceled",
    }
}

impl DeploymentStatus {
    /// Returns whether a deployment in this status has ended.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Active | Self::Failure | Self::Canceled)
    }
}

/// A file of a site, as a plan lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SiteFile {
    /// The path inside the site, with forward slashes and no leading one: `css/site.css`.
    pub path: String,
    /// The length of the content in bytes.
    pub size: u64,
    /// The SHA-256 digest of the content, in lower-case hexadecimal.
    pub digest: String,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PlanDeployment {
    pub(crate) files: Vec<SiteFile>,
}

/// The plan of a deployment: the files whose content the server does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DeploymentPlan {
    /// The id of the plan.
    pub plan_id: String,
    /// The time at which the plan expires, in Unix seconds.
    pub expires_at: i64,
    /// The paths of the files to send.
    pub missing: Vec<String>,
    /// Number of files of the site.
    pub file_count: u64,
    /// Size of the site in bytes.
    pub total_bytes: u64,
    /// Size of the files to send in bytes.
    pub missing_bytes: u64,
    /// Maximum size of the upload in bytes.
    pub max_upload_bytes: u64,
}

/// The options of a deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeployOptions {
    /// The branch. `production` is the live site; other branches are previews. Default: `production`.
    pub branch: Option<String>,
    /// A description of the deployment. Default: none.
    pub message: Option<String>,
    /// The plan whose missing files the archive contains. Default: none, the archive is complete.
    pub plan_id: Option<String>,
    /// The idempotency key: 1 to 255 visible ASCII characters. A repeated key returns the same deployment. Default: a
    /// new key for each call.
    pub idempotency_key: Option<String>,
}

/// A deployment that was queued.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct QueuedDeployment {
    /// The id of the deployment.
    pub deployment_id: String,
    /// The status of the deployment.
    pub status: DeploymentStatus,
    /// The name of the pages project that the site is deployed to.
    pub project_name: String,
}

/// One publication of a site on a branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Deployment {
    /// The id of the deployment.
    pub deployment_id: String,
    /// The status of the deployment.
    pub status: DeploymentStatus,
    /// The branch of the deployment.
    pub branch: String,
    /// The name of the pages project that the site is deployed to.
    pub project_name: String,
    /// The URL of the branch; `None` before it is served.
    pub url: Option<String>,
    /// The URL at which this deployment stays available; `None` if there is none.
    pub permalink: Option<String>,
    /// The description that was given with the deployment; `None` if none was.
    pub message: Option<String>,
    /// The reason for the failure or cancellation; `None` if there is none.
    pub error_message: Option<String>,
    /// The id of the deployment at the provider; `None` before the upload to it.
    pub cf_deployment_id: Option<String>,
    /// Number of files of the site; `None` if it is unknown.
    pub file_count: Option<u64>,
    /// Size of the site in bytes; `None` if it is unknown.
    pub total_bytes: Option<u64>,
    /// The user or service that deployed.
    pub user_id: String,
    /// The deployment whose content this rollback or promotion repeats; `None` for others.
    pub source_deployment_id: Option<String>,
    /// True if visitors of the branch see this deployment.
    pub is_live: bool,
    /// True if production is pinned to this deployment.
    pub is_pinned: bool,
    /// The time at which the work began, in Unix seconds; `None` before.
    pub started_at: Option<i64>,
    /// The time at which the deployment ended, in Unix seconds; `None` before.
    pub completed_at: Option<i64>,
    /// The time at which the deployment was requested, in Unix seconds.
    pub created_at: i64,
}

/// The deployments of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeploymentFilter {
    /// The branch of the deployments. Default: any.
    pub branch: Option<String>,
    /// The status of the deployments. Default: any.
    pub status: Option<DeploymentStatus>,
    /// The part of the list. Default: the first 20.
    pub page: PageQuery,
}

/// A change of a deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DeploymentProgress {
    /// The deployment after the event.
    pub deployment: DeploymentState,
    /// The event that changed the deployment; `None` if another program performs the deployment.
    pub event: Option<DeploymentEvent>,
}

/// The status of a deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct DeploymentState {
    /// The id of the deployment.
    pub deployment_id: String,
    /// The status of the deployment.
    pub status: DeploymentStatus,
    /// The id of the deployment at the provider; `None` before the upload to it.
    pub cf_deployment_id: Option<String>,
    /// The URL of the branch; `None` before it is served.
    pub url: Option<String>,
    /// The reason for the failure or cancellation; `None` if there is none.
    pub error_message: Option<String>,
    /// The time at which the work began, in Unix seconds; `None` before.
    pub started_at: Option<i64>,
    /// The time at which the deployment ended, in Unix seconds; `None` before.
    pub completed_at: Option<i64>,
}

/// An event in the history of a deployment's job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct DeploymentEvent {
    /// The number of the event within the history.
    pub seq: u64,
    /// The name of the event.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The step that the event is about; `None` if it is about no step.
    pub step: Option<String>,
    /// The reason for the event, in words or as an error code; `None` if there is none.
    pub reason: Option<String>,
}
