//! The input and the result of a state transition of a job.

use std::time::Duration;

use serde_json::Value;

use super::{FirstLook, Job, JobError, JobMove};
use crate::kernel::{Error, IllegalMove, Timestamp};

/// What happens to a job.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    /// A worker takes it.
    Claim,
    /// The holder of this fence reports.
    Work(i64, Report),
    /// The wait is over: its time has come, or somebody signals.
    Wake {
        /// Whether it is a signal, which need not wait for the time.
        signalled: bool,
    },
    /// Its lease has ended.
    Reap,
    /// Its deadline may have passed.
    Deadline,
    /// An operator lets it go on, or run now.
    Retry,
    /// An operator stops it.
    Cancel {
        /// Why.
        reason: String,
    },
    /// An operator declares it done.
    ForceComplete,
    /// An operator replays it from the dead-letter queue.
    Replay,
    /// A step was undone: its effect was removed or is kept for good.
    Undone {
        /// The name of the step.
        step: String,
        /// The reason for keeping the effect; `None` if it was removed.
        left: Option<String>,
    },
    /// The undoing of its step of this name has stopped midway.
    UndoStopped(String),
}

/// What a worker reports of the job it holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// Work on this step begins.
    Start(usize),
    /// The result of the first observation of this running step. A stored result is not replaced.
    Look(usize, FirstLook),
    /// This step is done, with this output; the job completes with its last step.
    Advance(usize, Value),
    /// There is no step left to do.
    Complete,
    /// The current step failed.
    Fail(Failure),
    /// The current step waits.
    Wait {
        /// When to look again.
        until: Timestamp,
        /// What is waited for.
        reason: String,
    },
    /// A part of the current step is done. The job is queued again and earlier failures are reset.
    Progress,
    /// The worker stops.
    Release {
        /// Whether work on the current step has begun, so that its effect may have happened.
        begun: bool,
    },
}

/// What a failed attempt means for the job.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// To be tried again, while there are attempts left.
    Transient {
        /// What went wrong.
        error: JobError,
        /// The provider's wish for a pause; zero when it has none.
        retry_after: Duration,
        /// Whether the effect may have happened.
        unknown: bool,
    },
    /// Not to be tried again.
    Permanent(JobError),
}

/// Why something could not happen to a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The job belongs to somebody else by now; nothing may be written.
    LeaseLost,
    /// Its time has not come.
    NotDue,
    /// The report is about another step than the current one.
    OutOfOrder,
    /// It cannot be done in this status.
    Status(IllegalMove),
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Status(illegal) => illegal.into(),
            Refusal::LeaseLost | Refusal::NotDue | Refusal::OutOfOrder => {
                Self::Internal(format!("a job was moved out of turn: {refusal:?}"))
            }
        }
    }
}

/// Where in its lane a job goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LanePlace {
    /// Before all others.
    Front,
    /// Behind all others.
    Tail,
    /// Where its kind puts a new job.
    AsNew,
}

/// A job after a move.
#[derive(Clone, Debug, PartialEq)]
pub struct Moved {
    /// The job after it. Its position in the lane is still the old one, see [`Moved::lane_place`].
    pub job: Job,
    /// The move that was made.
    pub by: JobMove,
    /// The step it was about.
    pub step: Option<String>,
    /// Why, for the history.
    pub reason: Option<String>,
    /// Where in its lane the job goes, if it does not keep its position.
    pub lane_place: Option<LanePlace>,
}
