//! Builds of platforms (interface: "Build").

use schemars::JsonSchema;
use serde::Serialize;

use super::{Deployment, DeploymentStatus};
use crate::kernel::{
    BuildId, Environment, JobId, Line, Patch, PlatformId, Timestamp, UnixSeconds, record,
    text_enum, update_command,
};

text_enum! {
    /// The status of a build. Any status may follow any other, because builders outside this system report their own
    /// observations.
    pub enum BuildStatus {
        /// The status has not been reported.
        Unknown = "unknown",
        /// The build is in progress.
        Building = "building",
        /// The build succeeded.
        Success = "success",
        /// The build failed or was stopped.
        Failed = "failed",
    }
}

impl BuildStatus {
    /// Returns whether the build has ended: `success` or `failed`.
    #[must_use]
    pub const fn has_ended(self) -> bool {
        matches!(self, Self::Success | Self::Failed)
    }
}

text_enum! {
    /// The reason for a build.
    pub enum BuildTrigger {
        /// A feature was activated.
        FeatureActivation = "feature_activation",
        /// A caller deployed a site.
        Manual = "manual",
        /// A commit was pushed to the repository.
        Push = "push",
    }
}

/// A single build of a platform in an environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Build {
    /// The id of the build.
    pub id: BuildId,
    /// The platform that the build belongs to.
    pub platform_id: PlatformId,
    /// The environment in which the result of the build runs.
    pub environment: Environment,
    /// The repository that is built. `null` if it is unknown.
    pub repo_name: Option<Line<1, 255>>,
    /// The commit that is built. `null` if it is unknown.
    pub last_commit_sha: Option<Line<1, 100>>,
    /// The id of the resulting deployment at the provider. `null` if there is none.
    pub cf_deployment_id: Option<Line<1, 255>>,
    /// The URL at which the result is served. `null` if there is none.
    #[schemars(extend("format" = "uri"))]
    pub build_url: Option<String>,
    /// The status of the build.
    pub build_status: BuildStatus,
    /// The reason for the build.
    pub triggered_by: BuildTrigger,
    /// When the build was requested.
    pub triggered_at: Timestamp,
    /// When the build ended. `null` if no end is recorded.
    pub completed_at: Option<Timestamp>,
    /// When the record was last changed.
    pub updated_at: Timestamp,
    /// When the record was created. It never changes, so lists are ordered by it.
    #[serde(skip)]
    pub created_at: Timestamp,
    /// The job that makes the build. A job makes only one build.
    #[serde(skip)]
    pub job_id: Option<JobId>,
}

record! {
    Build as "build" by id, asked BuildQuery;
    of platform_id;
    audited, touched updated_at;
}

/// Queries for builds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildQuery {
    /// The builds of the platform, newest first.
    All,
    /// The builds in an environment, newest first.
    In(Environment),
    /// The build that a job makes.
    OfJob(JobId),
    /// The builds that were created and last changed before this time, earliest first.
    UnchangedSince(Timestamp),
}

update_command! {
    /// Request body that reports the progress of a build. Omitted fields stay unchanged.
    pub struct UpdateBuild for Build {
        set {
            /// The reason for the build.
            triggered_by: BuildTrigger,
        }
        also {
            /// The new status of the build.
            build_status: Option<BuildStatus>,
            /// When the build was requested, in Unix seconds.
            triggered_at: Option<UnixSeconds>,
            /// When the build ended, in Unix seconds. Default: the time of this request, if `buildStatus` ends the
            /// build and no end is recorded. `null` clears the recorded end.
            completed_at: Patch<UnixSeconds>,
        }
        optional {
            /// The repository that is built. `null` clears it.
            repo_name: Line<1, 255>,
            /// The commit that is built. `null` clears it.
            last_commit_sha: Line<1, 100>,
            /// The id of the resulting deployment at the provider. `null` clears it.
            cf_deployment_id: Line<1, 255>,
            /// The URL at which the result is served. `null` clears it.
            #[schemars(length(max = 2048), extend("format" = "uri"))]
            build_url: String,
        }
    }
}

/// The outcome that a job reports for its build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BuildOutcome {
    /// The build succeeded.
    Success {
        /// The id of the deployment at the provider. `None` keeps the recorded id.
        cf_deployment_id: Option<String>,
        /// The URL at which the result is served. `None` keeps the recorded URL.
        build_url: Option<String>,
    },
    /// The build failed or was stopped.
    Failed,
}

impl BuildOutcome {
    /// Returns the outcome for the build of a deployment that has ended.
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
    /// Returns the build with a new status. A status that ends the build sets `completed_at` unless an end is recorded;
    /// `building` clears it.
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

    /// Returns the build after an update. A time in `command` overrides the time that follows from the status.
    #[must_use]
    pub fn apply_update(mut self, command: UpdateBuild, now: Timestamp) -> Self {
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

    /// Returns the build after its job has ended. A successful build stays unchanged, because later work of the job is
    /// not part of the build.
    #[must_use]
    pub fn with_outcome(mut self, end: BuildOutcome, now: Timestamp) -> Self {
        if self.build_status == BuildStatus::Success {
            return self;
        }
        match end {
            BuildOutcome::Success {
                cf_deployment_id,
                build_url,
            } => {
                let known = cf_deployment_id.and_then(|id| Line::parse(&id).ok());
                self.cf_deployment_id = known.or(self.cf_deployment_id);
                self.build_url = build_url.or(self.build_url);
                self.completed_at = None;
                self.with_status(BuildStatus::Success, now)
            }
            BuildOutcome::Failed => self.with_status(BuildStatus::Failed, now),
        }
    }
}
