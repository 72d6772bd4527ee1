//! Provisioning: queueing, claiming and moving jobs, holds, and what operators do to jobs.
//!
//! A kind of job is declared with [`JobKind`]; [`enqueue`] queues one, [`Worker`] works on it. Every change of a job goes
//! through one function, which asks the state machine and writes the job, its lease, its lane, its history and its dead
//! letter in the caller's unit of work.

mod claim;
mod engine;
mod enqueue;
mod hold;
mod job;
mod kind;
mod kinds;
mod lane;
mod operate;
mod report;
mod step_error;
mod timers;
mod transition;

pub use claim::Claimed;
pub use engine::{Outcome, StepEnd, StepFuture, Supervisor, Unsupervised, Worker};
pub use enqueue::{enqueue, enqueue_child};
pub(super) use hold::follow_suspension;
pub use hold::{hold, release_hold};
pub use job::{JobFilter, JobListScope, JobView, LeaseView, authorize_list, events, get, list};
pub(super) use job::{belongs_to, child_of, find, of_kind};
pub use kind::{JobContext, JobInput, JobKind, JobStep, StepContext, StepPorts, Steps};
pub use kinds::{KindError, Kinds};
pub(super) use operate::cancel_unfinished;
pub use operate::{cancel, force_complete, replay, retry};
pub use report::LeaseState;
pub use step_error::{Observation, StepError};
pub use timers::{TimerStats, signal};
