//! The dead-letter queue. A dead letter refers to a job that stopped; replaying it queues the same job again, so
//! nothing is moved or copied.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{FailureKind, Job, JobError, StepStatus};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::{count, json};
use crate::kernel::{DlqEntryId, Environment, JobId, PlatformId, Timestamp, record, text_enum};

text_enum! {
    /// The status of a dead letter.
    pub enum DlqStatus {
        /// The job has stopped and needs an operator.
        Pending = "PENDING",
        /// The job was queued again and has not ended.
        Replayed = "REPLAYED",
        /// The job completed after all.
        Resolved = "RESOLVED",
        /// The job was cancelled after its replay.
        Discarded = "DISCARDED",
    }
}

impl DlqStatus {
    /// Returns whether the dead letter is open: `PENDING` or `REPLAYED`. A job has at most one open dead letter.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Replayed)
    }
}

/// An entry of the dead-letter queue: a job that stopped and needs an operator.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct DeadLetter {
    /// Unique id of the entry.
    pub id: DlqEntryId,
    /// The id of the job that stopped.
    pub job_id: JobId,
    /// The platform that the job works for. `null` if it belongs to none.
    pub platform_id: Option<PlatformId>,
    /// Name of the job's kind.
    pub kind: String,
    /// The environment that the job works in. `null` if it is not about one environment.
    pub environment: Option<Environment>,
    /// The current status of the entry.
    pub status: DlqStatus,
    /// Why the job stopped.
    pub failure_kind: FailureKind,
    /// Name of the step at which the job stopped. `null` if all steps were done.
    pub failed_step: Option<String>,
    /// The error that stopped the job. `null` if none was recorded.
    pub error: Option<JobError>,
    /// Number of failed attempts of the current step when the job stopped.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub attempts: i64,
    /// The input that the job was created with; its members depend on the kind. It never contains secrets.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json()"))]
    pub input: Value,
    /// The id of the request that queued the job.
    pub request_id: String,
    /// The trace id of the request that queued the job. `null` if the request was not traced.
    pub trace_id: Option<String>,
    /// Number of replays of the job.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub replay_count: i64,
    /// The time of the latest replay. `null` if there was none.
    pub replayed_at: Option<Timestamp>,
    /// The id of the operator who last replayed the job. `null` if there was no replay.
    pub replayed_by: Option<String>,
    /// The time at which the entry was resolved or discarded. `null` while it is open.
    pub resolved_at: Option<Timestamp>,
    /// The time at which the entry was created.
    pub created_at: Timestamp,
    /// The time of the entry's latest change.
    pub updated_at: Timestamp,
}

impl DeadLetter {
    /// Creates the dead letter of a job that has just stopped. If the job has an open dead letter, `earlier`, the
    /// result keeps its id, creation time and replay data.
    #[must_use]
    pub fn for_stopped_job(
        id: DlqEntryId,
        job: &Job,
        failure_kind: FailureKind,
        earlier: Option<&Self>,
        now: Timestamp,
    ) -> Self {
        let failed_step = job
            .steps
            .iter()
            .find(|s| matches!(s.status, StepStatus::Failed | StepStatus::Abandoned))
            .or_else(|| job.current_step().map(|i| &job.steps[i]));
        Self {
            id: earlier.map_or(id, |e| e.id.clone()),
            job_id: job.id.clone(),
            platform_id: job.platform_id.clone(),
            kind: job.kind.clone(),
            environment: job.environment,
            status: DlqStatus::Pending,
            failure_kind,
            failed_step: failed_step.map(|s| s.name.clone()),
            error: job.error.clone(),
            attempts: job.attempts,
            input: job.input.clone(),
            request_id: job.request_id.clone(),
            trace_id: job.trace_id.clone(),
            replay_count: job.replay_count,
            replayed_at: earlier.and_then(|e| e.replayed_at),
            replayed_by: earlier.and_then(|e| e.replayed_by.clone()),
            resolved_at: None,
            created_at: earlier.map_or(now, |e| e.created_at),
            updated_at: now,
        }
    }
}

record! {
    DeadLetter as "DLQ entry" by id, asked DlqQuery;
}

/// Queries for dead letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DlqQuery {
    /// The dead letters that match every given filter, newest first.
    Of {
        /// Matches dead letters in this status.
        status: Option<DlqStatus>,
        /// Matches dead letters of jobs of this platform.
        platform_id: Option<PlatformId>,
        /// Matches dead letters of jobs of this kind.
        kind: Option<String>,
    },
    /// The open dead letter of a job.
    OpenOf {
        /// The id of the job.
        job_id: JobId,
        /// The platform that the job works for; `None` if it works for none.
        platform_id: Option<PlatformId>,
    },
    /// The dead letters that were created and last changed before this time, and are resolved or discarded; earliest
    /// first.
    ClosedBefore(Timestamp),
}

impl DlqQuery {
    /// Returns the query for dead letters in this status, or in any status if it is `None`; newest first.
    #[must_use]
    pub const fn with_status(status: Option<DlqStatus>) -> Self {
        Self::Of {
            status,
            platform_id: None,
            kind: None,
        }
    }
}
