//! Deployment records (interface: "Deployment record (registry)").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Branch, DeploymentStatus};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::opt_count;
use crate::kernel::{
    DeploymentId, JobId, Line, PlatformId, Timestamp, UnixSeconds, record, text_enum,
};

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
    pub branch: Branch,
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

impl Deployment {
    /// A new record of a deployment that something else than the suite makes.
    #[must_use]
    pub fn create(
        id: DeploymentId,
        platform_id: &PlatformId,
        command: CreateDeployment,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            idempotency_key: command.idempotency_key.to_string(),
            platform_id: platform_id.clone(),
            user_id: command.user_id.to_string(),
            cf_deployment_id: None,
            project_name: command.project_name.to_string(),
            branch: command.branch,
            url: None,
            error_message: None,
            status: DeploymentStatus::Queued,
            file_count: None,
            total_bytes: None,
            started_at: None,
            completed_at: None,
            created_at: now,
            updated_at: now,
            content_hash: None,
            job_id: None,
        }
    }

    /// Tells whether the command asks for this very deployment once more.
    #[must_use]
    pub fn is_repeated_by(&self, command: &CreateDeployment) -> bool {
        self.idempotency_key == command.idempotency_key.as_str()
            && self.user_id == command.user_id.as_str()
            && self.project_name == command.project_name.as_str()
            && self.branch == command.branch
    }
}

/// Questions about deployments; newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeploymentQuery {
    /// All, or only those that have not ended.
    All {
        /// Only those that have not ended.
        in_flight: bool,
    },
    /// Those with this key. Each caller has keys of their own.
    WithKey(String),
    /// The one with this key of this caller.
    WithKeyOf {
        /// The key.
        idempotency_key: String,
        /// The person or program that deploys.
        user_id: String,
    },
    /// Those of a branch that have not ended; of those that no job works on, the ones that were moved since an instant.
    InFlightOf {
        /// The branch.
        branch: Branch,
        /// When whatever moves the others must have moved them last.
        moved_since: Timestamp,
    },
    /// Those of a branch with this content.
    WithContent {
        /// The branch.
        branch: Branch,
        /// SHA-256 of what was uploaded, in hex.
        content_hash: String,
    },
    /// Those of which an upload is kept: a job works on them, or they failed since an instant.
    HoldingUploads {
        /// Uploads of those that failed before are not kept.
        failed_since: Timestamp,
    },
    /// Those a job worked on.
    OfJob(JobId),
}

text_enum! {
    /// The deployments a list can be limited to.
    pub enum DeploymentPhase {
        /// Those that have not ended.
        InFlight = "in_flight",
    }
}

/// Which deployments a list shows. It has no further pages, so it takes its limit at its word.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentFilter {
    /// The one with this key alone.
    #[schemars(length(max = 255))]
    pub idempotency_key: Option<String>,
    /// Those that stand there alone.
    pub status: Option<DeploymentPhase>,
    /// How many at the most.
    #[serde(default = "DeploymentFilter::default_limit")]
    #[schemars(range(min = 1, max = 100))]
    pub limit: u32,
}

impl DeploymentFilter {
    const fn default_limit() -> u32 {
        20
    }
}

/// Enters a deployment that something else than the suite makes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateDeployment {
    /// What makes a second request the same deployment.
    pub idempotency_key: Line<1, 255>,
    /// Who deploys.
    pub user_id: Line<1, 255>,
    /// The pages project it is deployed to.
    pub project_name: Line<1, 255>,
    /// The branch.
    #[serde(default = "Branch::production")]
    pub branch: Branch,
}
