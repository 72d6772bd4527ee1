//! Deployment records (interface: "Deployment record (registry)").

use DeploymentStatus::{Active, Canceled, Deploying, Failure, Queued, Uploading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::opt_count;
use crate::kernel::{
    DeploymentId, IllegalMove, JobId, Line, Machine, PlatformId, TextError, Timestamp, UnixSeconds,
    record, state_machine, text, text_enum, update_command,
};

/// What a branch's name looks like, as a regular expression.
pub const BRANCH_PATTERN: &str = "^[A-Za-z0-9._/-]{1,255}$";

/// The branch that goes live.
pub const PRODUCTION: &str = "production";

fn branch(text: &str) -> Result<String, TextError> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'/' | b'-');
    if (1..=255).contains(&text.len()) && text.bytes().all(fits) {
        return Ok(text.to_owned());
    }
    Err(TextError::Malformed)
}

text! {
    /// The branch a site is deployed to, see [`BRANCH_PATTERN`].
    Branch, branch, {
        "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[A-Za-z0-9._/-]+$",
        "examples": [PRODUCTION],
    }
}

impl Branch {
    /// The branch that goes live.
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

text_enum! {
    /// Where a deployment stands.
    pub enum DeploymentStatus {
        /// Waiting for its turn.
        Queued = "queued",
        /// Its files are sent to the provider.
        Uploading = "uploading",
        /// The provider puts it up.
        Deploying = "deploying",
        /// Served. Never left.
        Active = "active",
        /// Did not work. Never left.
        Failure = "failure",
        /// Called off. Never left.
        Canceled = "canceled",
    }
}

impl DeploymentStatus {
    /// The statuses of a deployment that has not ended.
    pub const IN_FLIGHT: &'static [Self] = &[Queued, Uploading, Deploying];

    /// Tells whether it has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Active | Failure | Canceled)
    }
}

state_machine! {
    /// What happens to a deployment: forward alone, and out of every status that has not ended. It is created `queued`.
    pub enum DeploymentEvent moves DeploymentStatus {
        /// Its files are sent.
        Start = "start": [Queued] => Uploading, "deployment.started";
        /// The provider has its files.
        Upload = "upload": [Queued, Uploading] => Deploying, "deployment.uploaded";
        /// It is served.
        Activate = "activate": [Queued, Uploading, Deploying] => Active, "deployment.activated";
        /// It did not work.
        Fail = "fail": [Queued, Uploading, Deploying] => Failure, "deployment.failed";
        /// It was called off.
        Cancel = "cancel": [Queued, Uploading, Deploying] => Canceled, "deployment.canceled";
    }
}

update_command! {
    /// Changes a deployment that has not ended.
    pub struct DeploymentChange for Deployment {
        also {
            /// Where it stands.
            status: Option<DeploymentStatus>,
        }
        optional {
            /// Its id at the provider; `null` takes it away.
            #[schemars(length(max = 255))]
            cf_deployment_id: String,
            /// Where it is served; `null` takes it away.
            #[schemars(length(max = 2048))]
            url: String,
            /// Why it did not work; `null` takes it away.
            #[schemars(length(max = 2048))]
            error_message: String,
            /// How many files it has; `null` takes it away.
            #[schemars(range(min = 0))]
            file_count: i64,
            /// How large they are in all, in bytes; `null` takes it away.
            #[schemars(range(min = 0))]
            total_bytes: i64,
        }
    }
}

impl Deployment {
    /// The deployment after a change, and the event that was. When work begins and when it ends is noted by itself.
    ///
    /// # Errors
    /// [`IllegalMove`] for a change of one that has ended, and for a move that is not in the table.
    pub fn after(
        &self,
        change: &DeploymentChange,
        now: Timestamp,
    ) -> Result<(Self, Option<DeploymentEvent>), IllegalMove> {
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
            return Err(IllegalMove::new(self.status, in_flight));
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
    fn branches_are_letters_digits_and_four_signs() {
        for good in [PRODUCTION, "feature/x-1_2.3", &"a".repeat(255)] {
            assert!(Branch::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "a:b", "é", "a\n", &"a".repeat(256)] {
            assert!(Branch::parse(bad).is_err(), "{bad}");
        }
    }

    fn asked_for() -> Deployment {
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
        fn any_sequence_of_events_makes_only_the_moves_of_the_table(
            events in prop::collection::vec(prop::sample::select(DeploymentEvent::ALL), 1..30),
        ) {
            assert_only_table_moves(Queued, &events);
        }

        #[test]
        fn a_deployment_goes_forward_alone_and_never_changes_once_it_has_ended(
            wishes in prop::collection::vec((prop::option::of(prop::sample::select(DeploymentStatus::ALL)), prop::option::of("[a-z]{3}")), 1..30),
        ) {
            let mut deployment = asked_for();
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
