//! Provisioning: jobs that make and remove infrastructure, their history, lanes, leases, holds and dead letters.
//!
//! A job is a row with its steps inside it; one guarded write a move. [`JobMove`] lists every move there is and [`apply`]
//! is the one function that makes them. Everything else a move causes (lease, lane, history, dead letter) follows from
//! the job before and after it and is written by `use_case::provisioning` in the same unit of work.

mod backoff;
mod dlq;
mod event;
mod hold;
mod job;
mod lane;
mod step;
mod transition;
mod undo;

pub use backoff::retry_at;
pub use dlq::{DlqEntry, DlqQuery, DlqStatus};
pub use event::{JobEvent, JobEventQuery};
pub use hold::{DEPROVISION, HoldScope, HoldSource, JobHold, JobHoldQuery};
pub use job::{
    ACTIVATE_FEATURE, ADD_DOMAIN, Actor, DEADLINE, FailureKind, Job, JobKey, JobLease,
    JobLeaseQuery, JobQuery, JobStatus, LEASE, MAX_ATTEMPTS, MAX_LOST_LEASES, Progress,
    TIMED_KINDS, is_undo_kind, undo_of,
};
pub use lane::{JobLane, JobLaneQuery, LaneKey, LaneState, QueuedJob};
use step::MAX_OUTPUT_BYTES;
pub use step::{FirstLook, JobError, Step, StepStatus, effect_key};
pub use transition::{Failure, JobMove, LanePlace, Moved, Refusal, Report, Trigger, apply};
pub use undo::{effects_landed_at, left_by, left_output, undo_job, undone_steps};
