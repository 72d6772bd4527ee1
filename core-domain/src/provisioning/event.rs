//! The history of jobs: one entry a move, never changed, never removed.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Actor, JobStatus};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{JobEventId, JobId, Timestamp, record};

/// An entry of a job's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct JobEvent {
    /// The entry's id.
    #[serde(skip)]
    pub id: JobEventId,
    /// The job.
    pub job_id: JobId,
    /// Its number in the job's history, from 1, without gaps.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub seq: i64,
    /// When.
    pub at: Timestamp,
    /// What happened: the name of the move.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The status before; `None` for the creation.
    pub from_status: Option<JobStatus>,
    /// The status after.
    pub to_status: JobStatus,
    /// The step it was about, if any.
    pub step: Option<String>,
    /// The fence after.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub fence: i64,
    /// Who did it.
    pub actor: Actor,
    /// Why, if a reason was given.
    pub reason: Option<String>,
    /// The request behind it, if there was one.
    pub request_id: Option<String>,
}

record! {
    JobEvent as "job event" by id, asked JobEventQuery;
}

/// Questions about the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEventQuery {
    /// The history of a job after the entry with this number (0 for all of it), oldest first.
    After(JobId, i64),
    /// The history of a job, newest first.
    Of(JobId),
}
