//! Deployment records of built sites (interface: "Deployment record (registry)").

use DeploymentStatus::{Active, Canceled, Deploying, Failure, Queued, Uploading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::opt_count;
use crate::kernel::{
    DeploymentId, IllegalTransition, JobId, Line, Machine, PlatformId, TextError, Timestamp,
    UnixSeconds, record, state_machine, text, text_enum, update_command,
};

/// The regular expression that the name of a branch matches.
pub const BRANCH_PATTERN: &str = "^[A-Za-z0-9._/-]{1,255}$";

/// The name of the branch that goes live.
pub const PRODUCTION: &str = "production";

fn branch(text: &str) -> Result<String, TextError> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'/' | b'-');
    if (1..=255).contains(&text.len()) && text.bytes().all(fits) {
        return Ok(text.to_owned());
    }
    Err(TextError::Malformed)
}

text! {
    /// The branch that a site is deployed to, see [`BRANCH_PATTERN`].
    Branch, branch, {
        "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[A-Za-z0-9._/-]+$",
        "examples": [PRODUCTION],
    }
}

impl Branch {
    /// Returns the branch that goes live.
    #[must_use]
    pub fn production() -> Self {
        Self(PRODUCTION.to_owned())
    }
}

/// A deployment of a built site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Deployment {
    /// The id of the deployment.
    pub id: DeploymentId,
    /// The key that identifies repeated requests. It is unique per platform and `userId`.
    pub idempotency_key: String,
    /// The platform that the site belongs to.
    pub platform_id: PlatformId,
    /// The caller that deployed: the id of a user or the name of a service.
    pub user_id: String,
    /// The id of the deployment at the provider. `null` until it is known.
    pub cf_deployment_id: Option<String>,
    /// The name of the pages project that the site is deployed to.
    pub project_name: String,
    /// The branch that the site is deployed to. `production` goes live.
    pub branch: Branch,
    /// The URL at which the site is served. `null` until it is known.
    pub url: Option<String>,
    /// The reason why the deployment failed or was canceled. `null` if there is none.
    pub error_message: Option<String>,
    /// The status of the deployment.
    pub status: DeploymentStatus,
    /// Number of files of the site. `null` if it is unknown.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "opt_count()"))]
    pub file_count: Option<i64>,
    /// Total size of the files in bytes. `null` if it is unknown.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "opt_count()"))]
    pub total_bytes: Option<i64>,
    /// When the work on the deployment began, in Unix seconds. `null` while it is queued.
    #[serde(serialize_with = "UnixSeconds::serialize_optional_seconds")]
    #[schemars(with = "Option<UnixSeconds>")]
    pub started_at: Option<Timestamp>,
    /// When the deployment ended, in Unix seconds. `null` until then.
    #[serde(serialize_with = "UnixSeconds::serialize_optional_seconds")]
    #[schemars(with = "Option<UnixSeconds>")]
    pub completed_at: Option<Timestamp>,
    /// When the deployment was requested, in Unix seconds.
    #[serde(serialize_with = "UnixSeconds::serialize_seconds")]
    #[schemars(with = "UnixSeconds")]
    pub created_at: Timestamp,
    /// When the record was last changed, in Unix seconds.
    #[serde(serialize_with = "UnixSeconds::serialize_seconds")]
    #[schemars(with = "UnixSeconds")]
    pub updated_at: Timestamp,
    /// SHA-256 digest of the upload, in hexadecimal. `None` for a deployment that another program performs.
    #[serde(skip)]
    pub content_hash: Option<String>,
    /// The job that performs the deployment. `None` if another program performs it.
    #[serde(skip)]
    pub job_id: Option<JobId>,
    /// The description that the caller gave, for example the subject of a commit. `None` without one.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(value = "None"))]
    pub message: Option<DeploymentMessage>,
    /// The URL at which only this deployment is served, also after later deployments. `None` until it is known, and if
    /// the provider has no such URLs.
    #[serde(skip)]
    pub permalink: Option<String>,
    /// The deployment whose content this one has, if it was made by a rollback or promotion; `None` for an upload.
    #[serde(skip)]
    pub source_id: Option<DeploymentId>,
    /// When the deployment was pinned. A pinned deployment of `production` stays live until it is unpinned. `None` if it
    /// is not pinned.
    #[serde(skip)]
    pub pinned_at: Option<Timestamp>,
}

/// A description of a deployment: one line of 1 to 384 characters.
pub type DeploymentMessage = Line<1, 384>;

record! {
    Deployment as "deployment" by id, asked DeploymentQuery;
    of platform_id;
    audited, touched updated_at;
}

impl Deployment {
    /// Creates the record of a deployment that a program outside this system performs. Its status is `queued`.
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
            message: None,
            permalink: None,
            source_id: None,
            pinned_at: None,
        }
    }

    /// Returns whether the deployment goes live for all visitors, and not as a preview.
    #[must_use]
    pub fn is_production(&self) -> bool {
        self.branch.as_str() == PRODUCTION
    }

    /// Returns whether a later deployment of `production` is refused until this one is unpinned.
    #[must_use]
    pub const fn is_pinned(&self) -> bool {
        self.pinned_at.is_some()
    }

    /// Returns the deployment whose content this one has: itself, or the source of its rollback or promotion.
    #[must_use]
    pub fn content_id(&self) -> &DeploymentId {
        self.source_id.as_ref().unwrap_or(&self.id)
    }

    /// Returns whether the command repeats the request for this deployment: same key, user, project and branch.
    #[must_use]
    pub fn is_repeated_by(&self, command: &CreateDeployment) -> bool {
        self.idempotency_key == command.idempotency_key.as_str()
            && self.user_id == command.user_id.as_str()
            && self.project_name == command.project_name.as_str()
            && self.branch == command.branch
    }
}

/// Queries for deployments, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeploymentQuery {
    /// All deployments of the platform.
    All {
        /// Restricts the result to deployments that have not ended.
        in_flight: bool,
    },
    /// The deployments with an idempotency key. Different callers may use the same key.
    WithKey(String),
    /// The deployment of a caller with an idempotency key.
    WithKeyOf {
        /// The idempotency key of the request.
        idempotency_key: String,
        /// The user or service that deploys.
        user_id: String,
    },
    /// The deployments of a branch that have not ended. A deployment without a job is included only if it changed
    /// recently.
    InFlightOf {
        /// The branch of the deployments.
        branch: Branch,
        /// The earliest last change of an included deployment without a job.
        changed_since: Timestamp,
    },
    /// The deployments of a branch with the same content.
    WithContent {
        /// The branch of the deployments.
        branch: Branch,
        /// SHA-256 digest of the upload, in hexadecimal.
        content_hash: String,
    },
    /// The deployments whose upload is stored: a job works on them, or they failed recently.
    WithStoredUpload {
        /// The earliest failure after which an upload is still stored.
        failed_since: Timestamp,
    },
    /// The deployments that a job worked on.
    OfJob(JobId),
    /// The deployments of the platform, newest first.
    Listed {
        /// Restricts the result to a branch. `None` means all branches.
        branch: Option<Branch>,
        /// Restricts the result to a status. `None` means all statuses.
        status: Option<DeploymentStatus>,
    },
    /// The active deployments of a branch, newest first. The first one is live.
    ActiveOf(Branch),
    /// The pinned deployment of the platform.
    Pinned,
    /// The deployments that have ended and were created before an instant, earliest first.
    Ended {
        /// The end of the time of creation, exclusive.
        before: Timestamp,
        /// The creation and the id of the deployment after which the result begins; `None` for the first one.
        after: Option<(Timestamp, DeploymentId)>,
    },
    /// The deployments that have the content of this one, made by a rollback or promotion.
    CopiesOf(DeploymentId),
    /// The deployments without a job that have not ended and have not changed since an instant.
    Stuck {
        /// The latest last change of an included deployment.
        unchanged_since: Timestamp,
    },
}

text_enum! {
    /// The phases by which a list of deployments can be filtered.
    pub enum DeploymentPhase {
        /// The deployment has not ended.
        InFlight = "in_flight",
    }
}

/// Query parameters of the deployment list. The list has no further pages, so a limit that is out of range is refused.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeploymentFilter {
    /// Returns only deployments with this idempotency key.
    #[schemars(length(max = 255))]
    pub idempotency_key: Option<String>,
    /// Returns only deployments in this phase.
    pub status: Option<DeploymentPhase>,
    /// Maximum number of deployments to return, 1 to 100. Default: 20.
    #[serde(default = "DeploymentFilter::default_limit")]
    #[schemars(range(min = 1, max = 100))]
    pub limit: u32,
}

impl DeploymentFilter {
    const fn default_limit() -> u32 {
        20
    }
}

/// Request body that records a deployment performed by a program outside this system.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateDeployment {
    /// The key that identifies repeated requests for the same deployment.
    pub idempotency_key: Line<1, 255>,
    /// The user or service that deploys.
    pub user_id: Line<1, 255>,
    /// The name of the pages project that the site is deployed to.
    pub project_name: Line<1, 255>,
    /// The branch that the site is deployed to. Default: `production`, which goes live.
    #[serde(default = "Branch::production")]
    pub branch: Branch,
}

text_enum! {
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
    /// The statuses of a deployment that has not ended.
    pub const IN_FLIGHT: &'static [Self] = &[Queued, Uploading, Deploying];

    /// Returns whether the deployment has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Active | Failure | Canceled)
    }
}

state_machine! {
    /// Events of a deployment, which is created `queued`. Statuses only move forward. A deployment can end in every
    /// status that is not final.
    pub enum DeploymentEvent moves DeploymentStatus {
        /// The upload to the provider begins.
        Start = "start": [Queued] => Uploading, "deployment.started";
        /// The provider has received the files.
        Upload = "upload": [Queued, Uploading] => Deploying, "deployment.uploaded";
        /// The provider serves the site.
        Activate = "activate": [Queued, Uploading, Deploying] => Active, "deployment.activated";
        /// The deployment failed.
        Fail = "fail": [Queued, Uploading, Deploying] => Failure, "deployment.failed";
        /// The deployment was canceled.
        Cancel = "cancel": [Queued, Uploading, Deploying] => Canceled, "deployment.canceled";
    }
}

update_command! {
    /// Request body that updates a deployment that has not ended. Omitted fields stay unchanged.
    pub struct DeploymentChange for Deployment {
        also {
            /// The new status of the deployment.
            status: Option<DeploymentStatus>,
        }
        optional {
            /// The id of the deployment at the provider. `null` clears it.
            #[schemars(length(max = 255))]
            cf_deployment_id: String,
            /// The URL at which the site is served. `null` clears it.
            #[schemars(length(max = 2048))]
            url: String,
            /// The URL at which only this deployment is served. Only jobs change it.
            #[serde(skip)]
            permalink: String,
            /// The reason why the deployment failed. `null` clears it.
            #[schemars(length(max = 2048))]
            error_message: String,
            /// Number of files of the site. `null` clears it.
            #[schemars(range(min = 0))]
            file_count: i64,
            /// Total size of the files in bytes. `null` clears it.
            #[schemars(range(min = 0))]
            total_bytes: i64,
        }
    }
}

impl Deployment {
    /// Returns the deployment after a change, and the event that the change implies, if any. Sets `started_at` when
    /// work begins and `completed_at` when the deployment ends. A change without effect is always accepted.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the deployment has ended, or the state machine does not allow the status change.
    pub fn after(
        &self,
        change: &DeploymentChange,
        now: Timestamp,
    ) -> Result<(Self, Option<DeploymentEvent>), IllegalTransition> {
        let status = change.status.unwrap_or(self.status);
        let event = DeploymentEvent::between(self.status, status)?;
        let mut next = self.clone();
        next.status = status;
        change.clone().apply_to(&mut next);
        if next == *self {
            return Ok((next, None));
        }
        if self.status.is_terminal() {
            let in_flight = DeploymentStatus::IN_FLIGHT.iter().copied();
            return Err(IllegalTransition::new(self.status, in_flight));
        }
        if status != Queued {
            next.started_at = next.started_at.or(Some(now));
        }
        if status.is_terminal() {
            next.completed_at = Some(now);
        }
        Ok((next, event))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::kernel::{DeploymentId, Line, Patch, PlatformId, assert_only_table_moves};

    use super::*;

    #[test]
    fn branches_contain_only_letters_digits_and_four_symbols() {
        for good in [PRODUCTION, "feature/x-1_2.3", &"a".repeat(255)] {
            assert!(Branch::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "a:b", "é", "a\n", &"a".repeat(256)] {
            assert!(Branch::parse(bad).is_err(), "{bad}");
        }
    }

    fn queued_deployment() -> Deployment {
        let command = CreateDeployment {
            idempotency_key: Line::parse("k").unwrap(),
            user_id: Line::parse("ada").unwrap(),
            project_name: Line::parse("engines-site").unwrap(),
            branch: Branch::production(),
        };
        let (id, platform) = (DeploymentId::parse("d1"), PlatformId::parse("p1"));
        Deployment::create(id.unwrap(), &platform.unwrap(), command, Timestamp::EPOCH)
    }

    fn rank(status: DeploymentStatus) -> usize {
        DeploymentStatus::ALL
            .iter()
            .position(|s| *s == status)
            .unwrap()
            .min(3)
    }

    proptest! {
        #[test]
        fn random_events_follow_the_transition_table(
            events in prop::collection::vec(prop::sample::select(DeploymentEvent::ALL), 1..30),
        ) {
            assert_only_table_moves(Queued, &events);
        }

        #[test]
        fn a_deployment_only_moves_forward_and_never_changes_after_its_end(
            wishes in prop::collection::vec((prop::option::of(prop::sample::select(DeploymentStatus::ALL)), prop::option::of("[a-z]{3}")), 1..30),
        ) {
            let mut deployment = queued_deployment();
            for (second, (status, url)) in wishes.into_iter().enumerate() {
                let now = Timestamp::from_seconds(i64::try_from(second).unwrap() + 1);
                let url = url.map_or(Patch::Keep, Patch::Set);
                let change = DeploymentChange { status, url, ..DeploymentChange::default() };
                let outcome = deployment.after(&change, now);
                if deployment.status.is_terminal() {
                    prop_assert!(outcome.is_err() || outcome.unwrap().0 == deployment);
                    continue;
                }
                let Ok((next, _)) = outcome else {
                    prop_assert!(status.is_some_and(|to| rank(to) < rank(deployment.status)));
                    continue;
                };
                prop_assert!(rank(next.status) >= rank(deployment.status));
                prop_assert_eq!(next.completed_at.is_some(), next.status.is_terminal());
                prop_assert_eq!(next.started_at.is_some(), next.status != Queued);
                prop_assert!(deployment.started_at.is_none() || next.started_at == deployment.started_at);
                deployment = next;
            }
        }
    }
}
