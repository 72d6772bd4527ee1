//! The job record, its idempotency key, its actors and its lease.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::{JobError, LaneKey, Step, StepStatus};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::few;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::json;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::opt_json;
use crate::kernel::{
    Context, DlqEntryId, EntityId, Environment, JobId, PlatformId, TextValue, Timestamp, arbitrary,
    record, text_enum,
};

/// Maximum number of failed attempts of a step. The job fails when a step reaches it.
pub const MAX_ATTEMPTS: i64 = 8;

/// Maximum number of lost leases. A job that reaches it fails, because it may be what crashes its workers.
pub const MAX_LOST_LEASES: i64 = 5;

/// Default time from the creation of a job, or from an operator's retry, to its deadline. A kind can set another one.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);

/// The name of the job kind that activates a feature of an entity.
pub const ACTIVATE_FEATURE: &str = "feature.activate";

/// The name of the job kind that sets up a custom domain.
pub const ADD_DOMAIN: &str = "domain.add";

/// Suffix in the name of a kind whose jobs undo jobs of another kind.
const UNDO_SUFFIX: &str = ".undo";

/// Returns the name of the kind whose jobs undo jobs of `kind`.
#[must_use]
pub fn undo_kind_of(kind: &str) -> String {
    format!("{kind}{UNDO_SUFFIX}")
}

/// Returns whether jobs of this kind undo other jobs.
#[must_use]
pub fn is_undo_kind(kind: &str) -> bool {
    kind.ends_with(UNDO_SUFFIX)
}

/// Kinds whose run times can be queried with [`JobQuery::Completed`]. The database index of run times covers only
/// these.
pub const TIMED_KINDS: &[&str] = &[ACTIVATE_FEATURE];

text_enum! {
    /// The status of a job.
    pub enum JobStatus {
        /// The job can be claimed once `run_at` has passed, its lane is idle and no hold applies.
        Queued = "QUEUED",
        /// A worker executes the job. It has a lease; the current fence identifies the holder.
        Running = "RUNNING",
        /// The job waits for an external event. It is queued again at `run_at` or by a signal.
        Waiting = "WAITING",
        /// The job is done. This status is final.
        Completed = "COMPLETED",
        /// The job has stopped. Only an operator can continue it.
        Failed = "FAILED",
    }
}

impl JobStatus {
    /// Returns whether the job has ended: `COMPLETED` or `FAILED`.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

text_enum! {
    /// The reason why a job stopped. All kinds except `CANCELLED` create a dead letter.
    pub enum FailureKind {
        /// A step used up its attempts.
        AttemptsExhausted = "ATTEMPTS_EXHAUSTED",
        /// A step failed with an error that a retry cannot fix.
        PermanentError = "PERMANENT_ERROR",
        /// The job lost its worker too often, or lost it in its last attempt.
        WorkerLost = "WORKER_LOST",
        /// The job did not end before its deadline.
        DeadlineExceeded = "DEADLINE_EXCEEDED",
        /// An operator, or the removal of the platform, cancelled the job.
        Cancelled = "CANCELLED",
    }
}

impl FailureKind {
    /// Returns whether a job that stopped for this reason gets a dead letter.
    #[must_use]
    pub const fn opens_dead_letter(self) -> bool {
        !matches!(self, Self::Cancelled)
    }
}

/// A provisioning job.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Job {
    /// Unique id of the job.
    #[serde(rename = "jobId")]
    pub id: JobId,
    /// Name of the job's kind, for example `platform.deprovision`. It determines what the job does.
    pub kind: String,
    /// Version of the kind's list of steps when the job was created.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub definition_version: i64,
    /// The platform that the job works for. `null` if the job belongs to no platform, or to an onboarding that has not
    /// created one yet.
    pub platform_id: Option<PlatformId>,
    /// The entity that the job works for. `null` if it is not about an entity.
    pub entity_id: Option<EntityId>,
    /// The environment that the job works in. `null` if it is not about one environment.
    pub environment: Option<Environment>,
    /// The lane of the job. At most one job of a lane runs at a time.
    #[serde(skip)]
    pub lane: LaneKey,
    /// The position in the lane. The queued job with the lowest position runs first. An automatic retry keeps the
    /// position; a job that has waited gets a new one.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub lane_position: i64,
    /// Priority of the job. Among lanes that are ready, the one with the lowest number runs first. Default: 0.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub priority: i64,
    /// The current status of the job.
    pub status: JobStatus,
    /// The reason given for the latest cancellation. `null` if the job was not cancelled, or was retried since.
    pub reason: Option<String>,
    /// Why the job stopped. `null` if it has not failed.
    pub failure_kind: Option<FailureKind>,
    /// The latest error of the job. `null` if its latest attempt had none.
    pub error: Option<JobError>,
    /// The input that the job was created with; its members depend on the kind. It never contains secrets.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json()"))]
    pub input: Value,
    /// The outputs of the succeeded steps, by step name. `null` until the job completes.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "opt_json()"))]
    pub output: Option<Value>,
    /// The steps of the job, in the order of execution.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub steps: Vec<Step>,
    /// Number of failed attempts of the current step. It restarts at 0 with every step and with a retry by an operator.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub attempts: i64,
    /// Number of failed attempts of one step at which the job fails. Default: 8.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub max_attempts: i64,
    /// Number of times the job lost its worker. The job fails at 5. A retry by an operator resets it to 0, and so does
    /// progress within a step.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub lost_leases: i64,
    /// The earliest time at which the job is claimed (`QUEUED`) or woken (`WAITING`).
    pub run_at: Timestamp,
    /// The time at which the job fails if it has not ended.
    pub deadline_at: Timestamp,
    /// The reason why the job waits, in words. `null` unless the status is `WAITING`.
    pub waiting_for: Option<String>,
    /// Whether an operator completed the job by force.
    pub forced: bool,
    /// Number of replays from the dead-letter queue.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub replay_count: i64,
    /// The id of the job's latest dead letter. `null` if it never had one.
    pub dlq_entry_id: Option<DlqEntryId>,
    /// The id of the job that queued this one. `null` if no job did.
    pub parent_job_id: Option<JobId>,
    /// The idempotency key. Creating another job with the same key, kind and platform returns this job. `null` if it
    /// has none.
    #[schemars(with = "Option<String>")]
    pub idempotency_key: Option<JobKey>,
    /// The id of the request that queued the job.
    pub request_id: String,
    /// The trace id of the request that queued the job. `null` if the request was not traced.
    pub trace_id: Option<String>,
    /// The user, service or worker that queued the job.
    pub created_by: Actor,
    /// The number that decides who may write to the job. It increases whenever the job changes its holder or its
    /// status, so that writes of an earlier holder are refused.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub fence: i64,
    /// Number of events in the job's history.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub event_count: i64,
    /// The time at which the job was queued.
    pub created_at: Timestamp,
    /// The time at which a worker first claimed the job. `null` if none has.
    pub started_at: Option<Timestamp>,
    /// The time at which the job ended. `null` if it has not ended.
    pub finished_at: Option<Timestamp>,
    /// The time of the job's latest transition.
    pub updated_at: Timestamp,
}

/// The progress of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Number of steps that succeeded or were skipped.
    pub completed_steps: usize,
    /// Number of steps of the job.
    pub total_steps: usize,
    /// Share of the steps that are done, from 0 to 100 percent. Always 100 for a completed job.
    pub percent: u8,
    /// The present activity of the job, in words.
    pub message: String,
}

impl Job {
    /// Returns the index of the step to work on: the first that is neither succeeded nor skipped. `None` if there is
    /// none.
    #[must_use]
    pub fn current_step(&self) -> Option<usize> {
        self.steps.iter().position(|step| !step.status.is_done())
    }

    /// Returns the index of the first unfinished step after `step`; `None` if there is none.
    #[must_use]
    pub fn step_after(&self, step: usize) -> Option<usize> {
        let mut later = self.steps.iter().enumerate().skip(step + 1);
        let open = later.find(|(_, step)| !step.status.is_done());
        open.map(|(at, _)| at)
    }

    /// Returns whether the job undoes its parent.
    #[must_use]
    pub fn is_undo(&self) -> bool {
        is_undo_kind(&self.kind)
    }

    /// Returns the output of the step with this name; `None` unless the step has succeeded.
    #[must_use]
    pub fn output_of(&self, step: &str) -> Option<&Value> {
        self.steps
            .iter()
            .find(|s| s.name == step && s.status == StepStatus::Succeeded)
            .and_then(|s| s.output.as_ref())
    }

    /// Returns the progress of the job.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let total = self.steps.len();
        let completed = self.steps.iter().filter(|s| s.status.is_done()).count();
        let percent = if self.status == JobStatus::Completed {
            100
        } else {
            u8::try_from(completed * 100 / total.max(1)).unwrap_or(100)
        };
        Progress {
            completed_steps: completed,
            total_steps: total,
            percent,
            message: self.message(),
        }
    }

    fn undone_steps(&self) -> usize {
        let undone = |step: &&Step| step.status == StepStatus::Undone;
        self.steps.iter().filter(undone).count()
    }

    fn message(&self) -> String {
        let step = self
            .current_step()
            .map_or("the last step", |i| self.steps[i].name.as_str());
        match self.status {
            JobStatus::Queued if self.attempts > 0 => {
                format!(
                    "{step}: trying again ({} of {})",
                    self.attempts + 1,
                    self.max_attempts
                )
            }
            JobStatus::Queued => "waiting for its turn".to_owned(),
            JobStatus::Running => step.to_owned(),
            JobStatus::Waiting => {
                format!(
                    "{step}: waiting for {}",
                    self.waiting_for.as_deref().unwrap_or("its time")
                )
            }
            JobStatus::Completed if self.forced => "declared done by an operator".to_owned(),
            JobStatus::Completed => "done".to_owned(),
            JobStatus::Failed => match self.undone_steps() {
                0 => format!("stopped at {step}"),
                undone => format!("stopped; {undone} of {} steps undone", self.steps.len()),
            },
        }
    }
}

record! {
    Job as "job" by id, asked JobQuery;
}

/// Queries for jobs.
#[derive(Clone, Debug, PartialEq)]
pub enum JobQuery {
    /// The jobs that match every given filter, newest first.
    Of {
        /// Matches the jobs of this platform.
        platform_id: Option<PlatformId>,
        /// Matches the jobs in this status.
        status: Option<JobStatus>,
    },
    /// The queued jobs of a lane, in the order in which they run.
    QueuedInLane(LaneKey),
    /// The waiting jobs of these lanes, in no order.
    WaitingInLanes(Vec<LaneKey>),
    /// The jobs that were created with one of these keys.
    IdempotencyKeys(Vec<String>),
    /// The jobs of a platform and kind, newest first.
    OfKind(PlatformId, String),
    /// The jobs of one of the [`TIMED_KINDS`] that completed without force, newest first.
    Completed(&'static str),
    /// The unfinished jobs of a platform, oldest first.
    Unfinished(PlatformId),
    /// The jobs in the lanes of a platform that a job queued, newest first.
    QueuedBy {
        /// The job that queued them.
        parent: JobId,
        /// The platform whose lanes they are in.
        platform_id: PlatformId,
    },
    /// The jobs of a kind and lane that a job queued, newest first. Finds the undo jobs of a job, which run in its lane.
    Undoing {
        /// The job that queued them.
        parent: JobId,
        /// The kind of the queued jobs.
        kind: String,
        /// The lane of both jobs.
        lane: LaneKey,
    },
    /// The waiting jobs whose `run_at` is at or before this time, earliest first.
    WakeAt(Timestamp),
    /// The unfinished jobs whose deadline is before this time, earliest first.
    OverdueAt(Timestamp),
    /// The jobs that were created and last changed before this time, and that completed or were cancelled; earliest
    /// first. Other failed jobs have an open dead letter.
    EndedBefore(Timestamp),
}

/// Separates kind, platform and key in a stored idempotency key.
const SEPARATOR: char = '\n';

/// The idempotency key of a job, scoped to its kind and its platform. It serializes without the scope.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobKey(String);

impl JobKey {
    /// Creates the key of a job of this kind. `platform` is `None` for a job without a platform.
    #[must_use]
    pub fn new(kind: &str, platform: Option<&PlatformId>, key: &str) -> Self {
        let platform = platform.map_or("", PlatformId::as_str);
        Self(format!("{kind}{SEPARATOR}{platform}{SEPARATOR}{key}"))
    }

    /// Returns the key without its scope.
    #[must_use]
    pub fn key(&self) -> &str {
        // Earlier versions stored keys without a scope.
        self.0.splitn(3, SEPARATOR).nth(2).unwrap_or(&self.0)
    }

    /// Returns the id of the platform that scopes the key; `None` for a job without a platform, and for a key that an earlier
    /// version stored without a scope.
    #[must_use]
    pub fn platform(&self) -> Option<&str> {
        let mut parts = self.0.splitn(3, SEPARATOR).skip(1);
        let platform = parts.next()?;
        parts.next()?;
        (!platform.is_empty()).then_some(platform)
    }

    /// Returns the key with its scope.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl serde::Serialize for JobKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.key())
    }
}

impl TextValue for JobKey {
    fn as_text(&self) -> &str {
        &self.0
    }

    fn from_text(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
    }
}

arbitrary!(JobKey as "[a-z]{1,8}\n[a-z0-9-]{0,8}\n[ -~]{1,16}");

/// The `kind` of an actor that executes jobs.
const WORKER_ACTOR: &str = "worker";

/// The originator of a change to a job.
#[derive(
    Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Actor {
    /// The type of the actor: `user`, `service`, `system`, `worker` or `anonymous`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The id of the actor within its type.
    pub id: String,
}

impl Actor {
    /// Creates the actor for the caller of a use case.
    #[must_use]
    pub fn caller(cx: &Context) -> Self {
        Self {
            kind: cx.caller.kind().to_owned(),
            id: cx.caller.actor_id().to_owned(),
        }
    }

    /// Creates the actor for the worker with this owner id.
    #[must_use]
    pub fn worker(owner: &str) -> Self {
        Self {
            kind: WORKER_ACTOR.to_owned(),
            id: owner.to_owned(),
        }
    }

    /// Returns whether the actor is a worker.
    #[must_use]
    pub fn is_worker(&self) -> bool {
        self.kind == WORKER_ACTOR
    }

    /// Creates the actor for changes without a caller, such as those of timers.
    #[must_use]
    pub fn system() -> Self {
        Self {
            kind: "system".to_owned(),
            id: "system".to_owned(),
        }
    }
}

/// Default duration of a lease, counted from the claim or the latest heartbeat.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(30);

/// A worker's lease on a running job. It exists exactly as long as the job runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct JobLease {
    /// The id of the running job.
    pub job_id: JobId,
    /// The fence of the job when it was claimed.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub fence: i64,
    /// The owner id of the holder, generated at random when a worker is created.
    pub owner: String,
    /// The time at which the lease expires. Afterwards the job can be taken away from its holder.
    pub lease_until: Timestamp,
}

record! {
    JobLease as "job lease" by job_id, asked JobLeaseQuery;
}

/// Queries for leases. Results are ordered by expiry, earliest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobLeaseQuery {
    /// The leases that expired before this time.
    ExpiredAt(Timestamp),
    /// All leases that exist.
    All,
    /// The leases of these jobs.
    OfJobs(Vec<JobId>),
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn idempotency_key_is_scoped_to_kind_and_platform_and_serializes_without_scope() {
        let platforms = ["p1", "p2"].map(|id| PlatformId::parse(id).unwrap());
        let keys = [
            JobKey::new("report", None, "may"),
            JobKey::new("letter", None, "may"),
            JobKey::new("report", Some(&platforms[0]), "may"),
            JobKey::new("report", Some(&platforms[1]), "may"),
        ];
        for (at, key) in keys.iter().enumerate() {
            assert!(!keys[..at].contains(key), "{key:?}");
            assert_eq!(key.key(), "may");
            assert_eq!(serde_json::to_value(key).unwrap(), "may");
        }
        assert_eq!(JobKey::from_text("may").unwrap().key(), "may");
    }
}
