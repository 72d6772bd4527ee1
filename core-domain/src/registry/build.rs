//! Builds (interface: "Build").

use schemars::JsonSchema;
use serde::Serialize;

use super::{Deployment, DeploymentStatus};
use crate::kernel::{
    BuildId, Environment, JobId, Line, Patch, PlatformId, Timestamp, UnixSeconds, record,
    text_enum, update_command,
};

text_enum! {
    /// Where a build stands. Any may follow any: whoever builds says what they saw.
    pub enum BuildStatus {
        /// Nobody knows.
        Unknown = "unknown",
        /// Under way.
        Building = "building",
        /// Done.
        Success = "success",
        /// Stopped.
        Failed = "failed",
    }
}

impl BuildStatus {
    /// Tells whether the build has ended: `success` or `failed`.
    #[must_use]
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Success | Self::Failed)
    }
}

text_enum! {
    /// What a build was made for.
    pub enum BuildTrigger {
        /// A feature was activated.
        FeatureActivation = "feature_activation",
        /// Somebody deployed.
        Manual = "manual",
        /// Something was pushed to the repository.
        Push = "push",
    }
}

/// A build of a platform in an environment: one run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Build {
    /// The build's id.
    pub id: BuildId,
    /// The platform.
    pub platform_id: PlatformId,
    /// Where what it builds runs.
    pub environment: Environment,
    /// The repository it is made of.
    pub repo_name: Option<Line<1, 255>>,
    /// The commit it is made of.
    pub last_commit_sha: Option<Line<1, 100>>,
    /// Its deployment at the provider.
    pub cf_deployment_id: Option<Line<1, 255>>,
    /// Where what it built is served.
    #[schemars(extend("format" = "uri"))]
    pub build_url: Option<String>,
    /// Where it stands.
    pub build_status: BuildStatus,
    /// What it was made for.
    pub triggered_by: BuildTrigger,
    /// When it was asked for.
    pub triggered_at: Timestamp,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it was entered; the order of lists, which nobody changes.
    #[serde(skip)]
    pub created_at: Timestamp,
    /// The job that builds; it makes no other.
    #[serde(skip)]
    pub job_id: Option<JobId>,
}

record! {
    Build as "build" by id, asked BuildQuery;
    of platform_id;
    audited, touched updated_at;
}

/// Questions about builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildQuery {
    /// All, newest first.
    All,
    /// Those in an environment, newest first.
    In(Environment),
    /// The one that a job makes.
    OfJob(JobId),
}

update_command! {
    /// Notes what became of a build.
    pub struct UpdateBuild for Build {
        set {
            /// What it was made for.
            triggered_by: BuildTrigger,
        }
        also {
            /// Where it stands.
            build_status: Option<BuildStatus>,
            /// When it was asked for, in Unix seconds.
            triggered_at: Option<UnixSeconds>,
            /// When it ended, in Unix seconds; now when it ends and nothing is said. `null` takes it away.
            completed_at: Patch<UnixSeconds>,
        }
        optional {
            /// The repository it is made of; `null` takes it away.
            repo_name: Line<1, 255>,
            /// The commit it is made of; `null` takes it away.
            last_commit_sha: Line<1, 100>,
            /// Its deployment at the provider; `null` takes it away.
            cf_deployment_id: Line<1, 255>,
            /// Where what it built is served; `null` takes it away.
            #[schemars(length(max = 2048), extend("format" = "uri"))]
            build_url: String,
        }
    }
}

/// What a job made of its build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildEnd {
    /// It is done.
    Success {
        /// Its deployment at the provider.
        cf_deployment_id: Option<String>,
        /// Where what it built is served.
        build_url: Option<String>,
    },
    /// It has stopped.
    Failed,
}

impl BuildEnd {
    /// Of the build of a deployment that has ended.
    #[must_use]
    pub fn of(deployment: &Deployment) -> Self {
        if deployment.status != DeploymentStatus::Active {
            return Self::Failed;
        }
        Self::Success {
            cf_deployment_id: deployment.cf_deployment_id.clone(),
            build_url: deployment.url.clone(),
        }
    }
}

impl Build {
    /// The build with a status. When it ended is noted by itself, and no longer true while it is under way again.
    #[must_use]
    pub fn with_status(mut self, status: BuildStatus, now: Timestamp) -> Self {
        self.build_status = status;
        if status.has_ended() {
            self.completed_at = self.completed_at.or(Some(now));
        } else if status == BuildStatus::Building {
            self.completed_at = None;
        }
        self
    }

    /// The build after a change.
    #[must_use]
    pub fn updated(mut self, command: UpdateBuild, now: Timestamp) -> Self {
        if let Some(UnixSeconds(at)) = command.triggered_at {
            self.triggered_at = at;
        }
        if command.completed_at == Patch::Clear {
            self.completed_at = None;
        }
        if let Some(status) = command.build_status {
            self = self.with_status(status, now);
        }
        if let Patch::Set(UnixSeconds(at)) = command.completed_at {
            self.completed_at = Some(at);
        }
        command.apply_to(&mut self);
        self
    }

    /// The build once its job has ended. One that was done stays so: what a job does afterwards is no build.
    #[must_use]
    pub fn ended(mut self, end: BuildEnd, now: Timestamp) -> Self {
        if self.build_status == BuildStatus::Success {
            return self;
        }
        match end {
            BuildEnd::Success {
                cf_deployment_id,
                build_url,
            } => {
                let known = cf_deployment_id.and_then(|id| Line::parse(&id).ok());
                self.cf_deployment_id = known.or(self.cf_deployment_id);
                self.build_url = build_url.or(self.build_url);
                self.completed_at = None;
                self.with_status(BuildStatus::Success, now)
            }
            BuildEnd::Failed => self.with_status(BuildStatus::Failed, now),
        }
    }
}
