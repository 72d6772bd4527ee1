//! The history of jobs: one event per transition. Events are never changed or removed.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Actor, JobStatus};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{JobEventId, JobId, Timestamp, record};

/// An event in the history of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct JobEvent {
    /// The id of the event.
    #[serde(skip)]
    pub id: JobEventId,
    /// The id of the job that the event belongs to.
    pub job_id: JobId,
    /// Number of the event within the job's history. The first is 1; there are no gaps.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub seq: i64,
    /// The time at which the event happened.
    pub at: Timestamp,
    /// Name of the transition, for example `job.claimed`; `job.created` for the creation.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The status before the event. `null` for the creation of the job.
    pub from_status: Option<JobStatus>,
    /// The status after the event.
    pub to_status: JobStatus,
    /// Name of the step that the event is about. `null` if it is about no step.
    pub step: Option<String>,
    /// The fence of the job after the event. It increases whenever the job changes its holder or its status.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub fence: i64,
    /// The user, service or worker that caused the event.
    pub actor: Actor,
    /// The reason for the event, in words or as an error code. `null` if there is none.
    pub reason: Option<String>,
    /// The id of the request during which the event happened. `null` if it did not happen during a request.
    pub request_id: Option<String>,
}

record! {
    JobEvent as "job event" by id, asked JobEventQuery;
}

/// Queries for the events of jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEventQuery {
    /// The events of a job with a greater number than this one, oldest first. The number 0 returns all of them.
    After(JobId, i64),
    /// All events of a job, newest first.
    Of(JobId),
}
