//! Deployment records (interface: "Deployment record (registry)").

use schemars::JsonSchema;
use serde::Serialize;

use super::DeploymentStatus;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::opt_count;
use crate::kernel::{DeploymentId, JobId, PlatformId, Timestamp, UnixSeconds, record};

/// A deployment of a built site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Deployment {
    /// The deployment's id.
    pub id: DeploymentId,
    /// What makes a second request the same deployment; no two deployments of a platform share one.
    pub idempotency_key: String,
    /// The platform.
    pub platform_id: PlatformId,
    /// Who deployed: a user's id or the name of a service.
    pub user_id: String,
    /// Its id at the provider.
    pub cf_deployment_id: Option<String>,
    /// The pages project it is deployed to.
    pub project_name: String,
    /// The branch: `production` goes live.
    pub branch: String,
    /// Where it is served.
    pub url: Option<String>,
    /// Why it did not work.
    pub error_message: Option<String>,
    /// Where it stands.
    pub status: DeploymentStatus,
    /// How many files it has.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "opt_count()"))]
    pub file_count: Option<i64>,
    /// How large they are in all.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "opt_count()"))]
    pub total_bytes: Option<i64>,
    /// When work on it began.
    #[serde(serialize_with = "UnixSeconds::show_optional")]
    #[schemars(with = "Option<UnixSeconds>")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(serialize_with = "UnixSeconds::show_optional")]
    #[schemars(with = "Option<UnixSeconds>")]
    pub completed_at: Option<Timestamp>,
    /// When it was asked for.
    #[serde(serialize_with = "UnixSeconds::show")]
    #[schemars(with = "UnixSeconds")]
    pub created_at: Timestamp,
    /// When it was last changed.
    #[serde(serialize_with = "UnixSeconds::show")]
    #[schemars(with = "UnixSeconds")]
    pub updated_at: Timestamp,
    /// SHA-256 of what was uploaded, in hex.
    #[serde(skip)]
    pub content_hash: Option<String>,
    /// The job that works on it.
    #[serde(skip)]
    pub job_id: Option<JobId>,
}

record! {
    Deployment as "deployment" by id, asked DeploymentQuery;
    of platform_id;
    audited, touched updated_at;
}

/// Questions about deployments; newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeploymentQuery {
    /// All, or only those that have not ended.
    All {
        /// Only those that have not ended.
        in_flight: bool,
    },
    /// The one with this key.
    WithKey(String),
    /// Those of a branch that have not ended.
    InFlightOf(String),
    /// Those of a branch with this content.
    WithContent {
        /// The branch.
        branch: String,
        /// SHA-256 of what was uploaded, in hex.
        content_hash: String,
    },
    /// Those a job worked on.
    OfJob(JobId),
}
