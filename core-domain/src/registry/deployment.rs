//! Deployment records (interface: "Deployment record (registry)").

use super::DeploymentStatus;
use crate::kernel::{DeploymentId, JobId, PlatformId, Timestamp};
use crate::port::Record;

/// A deployment of a built site.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    pub file_count: Option<i64>,
    /// How large they are in all.
    pub total_bytes: Option<i64>,
    /// When work on it began.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// SHA-256 of what was uploaded, in hex; not shown.
    pub content_hash: Option<String>,
    /// The job that works on it; not shown.
    pub job_id: Option<JobId>,
}

impl Record for Deployment {
    type Query = DeploymentQuery;
    const KIND: &'static str = "deployment";

    fn key(&self) -> &str {
        self.id.as_str()
    }
}

/// Questions about deployments; newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeploymentQuery {
    /// Those of a platform.
    OfPlatform {
        /// The platform.
        platform_id: PlatformId,
        /// Only those that have not ended.
        in_flight: bool,
    },
    /// The one of a platform with this key.
    WithKey(PlatformId, String),
    /// Those of a branch of a platform that have not ended.
    InFlightOf(PlatformId, String),
    /// Those of a branch of a platform with this content.
    WithContent {
        /// The platform.
        platform_id: PlatformId,
        /// The branch.
        branch: String,
        /// SHA-256 of what was uploaded, in hex.
        content_hash: String,
    },
}
