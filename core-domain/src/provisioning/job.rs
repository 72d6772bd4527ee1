//! Provisioning jobs.

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

/// How often a step is tried before the job fails.
pub const MAX_ATTEMPTS: i64 = 8;

/// How many lost leases make a job one that kills its workers.
pub const MAX_LOST_LEASES: i64 = 5;

/// How long a job may take from its creation, or from an operator's retry, to its end, unless its kind says otherwise.
pub const DEADLINE: Duration = Duration::from_secs(24 * 60 * 60);

/// The kind of job that makes a feature of an entity.
pub const ACTIVATE_FEATURE: &str = "feature.activate";

/// The kind of job that has a custom domain served.
pub const ADD_DOMAIN: &str = "domain.add";

/// What the name of a kind ends with whose jobs undo those of another kind.
const UNDO: &str = ".undo";

/// The name of the kind whose jobs undo those of this kind.
#[must_use]
pub fn undo_of(kind: &str) -> String {
    format!("{kind}{UNDO}")
}

/// Tells whether the jobs of a kind undo others.
#[must_use]
pub fn is_undo_kind(kind: &str) -> bool {
    kind.ends_with(UNDO)
}

/// The kinds whose run times are asked for; the index of run times has the jobs of no other.
pub const TIMED_KINDS: &[&str] = &[ACTIVATE_FEATURE];

text_enum! {
    /// Where a job stands.
    pub enum JobStatus {
        /// May be claimed when its time has come, its lane is free and nothing holds it.
        Queued = "QUEUED",
        /// A worker has it: there is a lease, and the fence names its holder.
        Running = "RUNNING",
        /// Parked on the outside world; wakes at `run_at` or by a signal.
        Waiting = "WAITING",
        /// Done. Never left.
        Completed = "COMPLETED",
        /// Stopped; only an operator moves it on.
        Failed = "FAILED",
    }
}

impl JobStatus {
    /// Tells whether the job has ended: `COMPLETED` or `FAILED`.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

text_enum! {
    /// Why a job stopped. All but `CANCELLED` open an entry of the dead-letter queue.
    pub enum FailureKind {
        /// A step failed as often as it may.
        AttemptsExhausted = "ATTEMPTS_EXHAUSTED",
        /// A step failed in a way that trying again does not mend.
        PermanentError = "PERMANENT_ERROR",
        /// Its workers kept vanishing.
        WorkerLost = "WORKER_LOST",
        /// It was not done in time.
        DeadlineExceeded = "DEADLINE_EXCEEDED",
        /// An operator stopped it.
        Cancelled = "CANCELLED",
    }
}

impl FailureKind {
    /// Tells whether a job that stopped like this waits in the dead-letter queue.
    #[must_use]
    pub const fn opens_dlq_entry(self) -> bool {
        !matches!(self, Self::Cancelled)
    }
}

/// A provisioning job (interface: "Provisioning job").
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Job {
    /// The job's id.
    #[serde(rename = "jobId")]
    pub id: JobId,
    /// What it does: the name of its kind.
    pub kind: String,
    /// The version of the kind it was created with.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub definition_version: i64,
    /// The platform it works for; `None` while an onboarding has none yet.
    pub platform_id: Option<PlatformId>,
    /// The entity it works for, if it is about one.
    pub entity_id: Option<EntityId>,
    /// The environment it works in, if it is about one.
    pub environment: Option<Environment>,
    /// The lane it runs in: one job of a lane at a time.
    #[serde(skip)]
    pub lane: LaneKey,
    /// Its position in the lane; lower goes first. Kept over a retry by itself, new at the tail after a wait.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub lane_position: i64,
    /// Lower goes first among lanes that are ready.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub priority: i64,
    /// Where it stands.
    pub status: JobStatus,
    /// Why an operator did what they did, or why it waits to be tried again.
    pub reason: Option<String>,
    /// Why it stopped.
    pub failure_kind: Option<FailureKind>,
    /// The last error.
    pub error: Option<JobError>,
    /// What it was asked to do; never a secret.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json()"))]
    pub input: Value,
    /// What it made: the outputs of its steps by name, set when it completes.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "opt_json()"))]
    pub output: Option<Value>,
    /// Its steps, in order.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub steps: Vec<Step>,
    /// Failed attempts of the current step.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub attempts: i64,
    /// How many of those there may be.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub max_attempts: i64,
    /// How often its worker vanished.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub lost_leases: i64,
    /// Not before this instant is it claimed (`QUEUED`) or woken (`WAITING`).
    pub run_at: Timestamp,
    /// When it fails if it has not ended.
    pub deadline_at: Timestamp,
    /// What it waits for.
    pub waiting_for: Option<String>,
    /// Whether an operator declared it done.
    pub forced: bool,
    /// How often it was replayed from the dead-letter queue.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub replay_count: i64,
    /// Its latest entry in the dead-letter queue.
    pub dlq_entry_id: Option<DlqEntryId>,
    /// The job that queued it, if one did.
    pub parent_job_id: Option<JobId>,
    /// The idempotency key. A second creation with the same key, kind and platform returns this job.
    #[schemars(with = "Option<String>")]
    pub idempotency_key: Option<JobKey>,
    /// The request that queued it.
    pub request_id: String,
    /// The trace of that request.
    pub trace_id: Option<String>,
    /// Who queued it.
    pub created_by: Actor,
    /// The only authority over the job: moves at every change of hands, so that a write of an earlier holder is refused.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub fence: i64,
    /// How many entries its history has.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub event_count: i64,
    /// When it was queued.
    pub created_at: Timestamp,
    /// When it first ran.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// When it last moved.
    pub updated_at: Timestamp,
}

/// How far a job is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Progress {
    /// Steps that are done or skipped.
    pub completed_steps: usize,
    /// All steps.
    pub total_steps: usize,
    /// The share that is done, 0 to 100.
    pub percent: u8,
    /// What happens now, in words.
    pub message: String,
}

impl Job {
    /// The step to be worked on: the first that is neither done nor skipped; `None` when there is none.
    #[must_use]
    pub fn current_step(&self) -> Option<usize> {
        self.steps.iter().position(|step| !step.status.is_done())
    }

    /// The step to be worked on when this one is done: the next that is neither done nor skipped.
    #[must_use]
    pub fn step_after(&self, step: usize) -> Option<usize> {
        let mut later = self.steps.iter().enumerate().skip(step + 1);
        let open = later.find(|(_, step)| !step.status.is_done());
        open.map(|(at, _)| at)
    }

    /// Tells whether it takes back what its parent has done.
    #[must_use]
    pub fn is_undo(&self) -> bool {
        is_undo_kind(&self.kind)
    }

    /// The output of a step that is done.
    #[must_use]
    pub fn output_of(&self, step: &str) -> Option<&Value> {
        self.steps
            .iter()
            .find(|s| s.name == step && s.status == StepStatus::Succeeded)
            .and_then(|s| s.output.as_ref())
    }

    /// How far it is.
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

/// Questions about jobs.
#[derive(Clone, Debug, PartialEq)]
pub enum JobQuery {
    /// Newest first; every part that is given must match.
    Of {
        /// Of this platform.
        platform_id: Option<PlatformId>,
        /// With this status.
        status: Option<JobStatus>,
    },
    /// The queued jobs of a lane, the one to run first in front.
    QueuedInLane(LaneKey),
    /// Those that were created under one of these keys.
    IdempotencyKeys(Vec<String>),
    /// Those of a platform and kind, newest first.
    OfKind(PlatformId, String),
    /// Those of one of the [`TIMED_KINDS`] that completed by themselves, newest first.
    Completed(&'static str),
    /// Those of a platform that have not ended, oldest first.
    Unfinished(PlatformId),
    /// Those of a platform that one job queued, newest first.
    QueuedBy(JobId),
    /// Those that a job queued and that are of this kind, the one that undoes it: newest first.
    Undoing(JobId, String),
    /// Those waiting that are to be woken at this instant, earliest first.
    WakeAt(Timestamp),
    /// Those that have not ended though their deadline lies before this instant, earliest first.
    OverdueAt(Timestamp),
}

/// The separator between kind, platform and key.
const SEPARATOR: char = '\n';

/// The idempotency key of a job, scoped to its kind and its platform. Serializes as the key without its scope.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct JobKey(String);

impl JobKey {
    /// Creates the key of a job of this kind; `platform` is `None` for a job without a platform.
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

/// The kind of actor that executes jobs.
const WORKER: &str = "worker";

/// Who did something to a job.
#[derive(
    Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Actor {
    /// `user`, `service`, `system`, `worker` or `anonymous`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Which one.
    pub id: String,
}

impl Actor {
    /// The caller of a use case.
    #[must_use]
    pub fn caller(cx: &Context) -> Self {
        Self {
            kind: cx.caller.kind().to_owned(),
            id: cx.caller.actor_id().to_owned(),
        }
    }

    /// A worker, by its owner id.
    #[must_use]
    pub fn worker(owner: &str) -> Self {
        Self {
            kind: WORKER.to_owned(),
            id: owner.to_owned(),
        }
    }

    /// Tells whether it is a worker.
    #[must_use]
    pub fn is_worker(&self) -> bool {
        self.kind == WORKER
    }

    /// The suite itself.
    #[must_use]
    pub fn system() -> Self {
        Self {
            kind: "system".to_owned(),
            id: "system".to_owned(),
        }
    }
}

/// How long a lease lasts from a claim or a heartbeat, unless a worker is told otherwise.
pub const LEASE: Duration = Duration::from_secs(30);

/// A worker's hold on a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct JobLease {
    /// The job.
    pub job_id: JobId,
    /// The fence the holder was given.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub fence: i64,
    /// The holder: random for each start of a process.
    pub owner: String,
    /// When the job may be taken away.
    pub lease_until: Timestamp,
}

record! {
    JobLease as "job lease" by job_id, asked JobLeaseQuery;
}

/// Questions about leases; earliest end first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobLeaseQuery {
    /// Those that ended before this instant.
    ExpiredAt(Timestamp),
    /// All.
    All,
    /// Those of these jobs.
    OfJobs(Vec<JobId>),
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn a_key_counts_for_one_kind_and_one_platform_and_is_shown_alone() {
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
