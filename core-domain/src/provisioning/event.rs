//! The history of jobs: one entry a move, never changed, never removed.

use super::JobStatus;
use crate::kernel::{Context, JobEventId, JobId, Timestamp};
use crate::port::Record;

/// The kind of actor that carries jobs out.
const WORKER: &str = "worker";

/// Who did something to a job.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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

/// An entry of a job's history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobEvent {
    /// The entry's id.
    pub id: JobEventId,
    /// The job.
    pub job_id: JobId,
    /// Its number in the job's history, from 1, without gaps.
    pub seq: i64,
    /// When.
    pub at: Timestamp,
    /// What happened: the name of the move.
    pub event_type: String,
    /// The status before; `None` for the creation.
    pub from_status: Option<JobStatus>,
    /// The status after.
    pub to_status: JobStatus,
    /// The step it was about, if any.
    pub step: Option<String>,
    /// The fence after.
    pub fence: i64,
    /// Who did it.
    pub actor: Actor,
    /// Why, if a reason was given.
    pub reason: Option<String>,
    /// The request behind it, if there was one.
    pub request_id: Option<String>,
}

impl Record for JobEvent {
    type Query = JobEventQuery;
    const KIND: &'static str = "job event";

    fn key(&self) -> &str {
        self.id.as_str()
    }
}

/// Questions about the history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEventQuery {
    /// The history of a job after the entry with this number (0 for all of it), oldest first.
    After(JobId, i64),
}
