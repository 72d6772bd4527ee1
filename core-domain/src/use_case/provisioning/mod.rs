//! Use cases of provisioning: creating, executing and operating jobs, and holds on jobs.
//!
//! A kind of job implements [`JobKind`]; [`enqueue`] creates a job and [`Worker`] executes it. Every change of a job
//! goes through one function. It asks the state machine and writes the job, its lease, its lane, its history and its
//! dead letter in the caller's unit of work.

mod attempt;
mod backlog;
mod batch;
mod claim;
mod dlq;
mod engine;
mod enqueue;
mod history;
mod hold;
mod job;
mod job_change;
mod kind;
mod kinds;
mod lane;
mod operate;
mod report;
mod retention;
mod step_error;
mod timers;
mod transition;
mod undo;
mod worker;

pub use attempt::AttemptReport;
pub use backlog::{JobBacklog, job_backlog};
pub use batch::CommitResult;
pub use dlq::{DlqEntryView, DlqFilter, DlqStatuses, get_dead_letter, list_dead_letters};
pub(super) use engine::estimated_seconds;
pub use enqueue::{enqueue, enqueue_child, enqueue_many};
pub(in crate::use_case) use history::{EVENTS_PER_READ, events_after};
pub use history::{JobFeed, JobFeedPage, JobProgressEvent, history, open_feed};
pub(super) use hold::sync_suspension_hold;
pub use hold::{
    CreateHold, HoldResult, HoldScopeType, HoldView, create_hold, get_hold, holds,
    lift_operator_hold, remove_hold, set_operator_hold,
};
pub use job::{JobFilter, JobListScope, JobView, LeaseView, authorize_list, get, list};
pub(super) use job::{
    belongs_to, find, find_child, find_unfinished, list_of_kind, with_descendants,
};
pub use kind::{JobContext, JobInput, JobKind, JobOwner, JobStep, StepContext, StepPorts, Steps};
pub use kinds::{KindError, Kinds};
pub use lane::{LaneUse, lanes_in_use};
pub(super) use operate::cancel_batch;
pub use operate::{cancel, force_complete, replay, retry};
pub use report::LeaseState;
pub use retention::{remove_old_dead_letters, remove_old_jobs};
pub use step_error::{Observation, StepError, Undone};
pub use timers::{TimerStats, signal};
pub use worker::{Claim, HeldJob, NoSupervisor, Outcome, StepEnd, StepFuture, Supervisor, Worker};
