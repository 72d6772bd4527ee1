//! The dead-letter queue: a view on jobs that stopped. Replaying one moves nothing and can lose nothing.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{FailureKind, Job, JobError, StepStatus};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::{count, json};
use crate::kernel::{DlqEntryId, Environment, JobId, PlatformId, Timestamp, record, text_enum};

text_enum! {
    /// Where an entry stands.
    pub enum DlqStatus {
        /// The job has stopped and waits for an operator.
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
    /// Tells whether the entry is open: `PENDING` or `REPLAYED`. A job has at most one open entry.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Replayed)
    }
}

/// An entry of the dead-letter queue (interface: "DLQ entry").
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct DlqEntry {
    /// The entry's id.
    pub id: DlqEntryId,
    /// The job.
    pub job_id: JobId,
    /// The job's platform.
    pub platform_id: Option<PlatformId>,
    /// The job's kind.
    pub kind: String,
    /// The job's environment.
    pub environment: Option<Environment>,
    /// Where the entry stands.
    pub status: DlqStatus,
    /// Why the job stopped.
    pub failure_kind: FailureKind,
    /// The step it stopped at.
    pub failed_step: Option<String>,
    /// The error that stopped it.
    pub error: Option<JobError>,
    /// Failed attempts of that step.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub attempts: i64,
    /// What the job was asked to do.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json()"))]
    pub input: Value,
    /// The request that queued the job.
    pub request_id: String,
    /// The trace of that request.
    pub trace_id: Option<String>,
    /// How often it was replayed.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub replay_count: i64,
    /// When it was last replayed.
    pub replayed_at: Option<Timestamp>,
    /// By whom.
    pub replayed_by: Option<String>,
    /// When it was closed.
    pub resolved_at: Option<Timestamp>,
    /// When it was opened.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl DlqEntry {
    /// The entry of a job that has just stopped; `earlier` is its open entry, if it has one.
    #[must_use]
    pub fn stopped(
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
    DlqEntry as "DLQ entry" by id, asked DlqQuery;
}

/// Questions about the dead-letter queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DlqQuery {
    /// Newest first; every part that is given must match.
    Of {
        /// With this status.
        status: Option<DlqStatus>,
        /// Of jobs of this platform.
        platform_id: Option<PlatformId>,
        /// Of jobs of this kind.
        kind: Option<String>,
    },
    /// The open entry of a job.
    OpenOf(JobId),
}

impl DlqQuery {
    /// With this status, or all; newest first.
    #[must_use]
    pub const fn with_status(status: Option<DlqStatus>) -> Self {
        Self::Of {
            status,
            platform_id: None,
            kind: None,
        }
    }
}
