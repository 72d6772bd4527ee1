//! Provisioning: jobs that make and remove infrastructure, their history, lanes, leases, holds and dead letters.
//!
//! A job is a row with its steps inside it; one guarded write a move. [`JobMove`] lists every move there is and [`apply`]
//! is the one function that makes them. Everything else a move causes (lease, lane, history, dead letter) follows from
//! the job before and after it and is written by `use_case::provisioning` in the same unit of work.

mod actor;
mod backoff;
mod dlq;
mod event;
mod hold;
mod job;
mod job_key;
mod lane;
mod lane_key;
mod lease;
mod moves;
mod step;
mod transition;
mod trigger;
mod undo;

pub use actor::Actor;
pub use backoff::retry_at;
pub use dlq::{DlqEntry, DlqQuery, DlqStatus};
pub use event::{JobEvent, JobEventQuery};
pub use hold::{DEPROVISION, HoldScope, HoldSource, JobHold, JobHoldQuery};
pub use job::{
    ACTIVATE_FEATURE, ADD_DOMAIN, DEADLINE, FailureKind, Job, JobQuery, JobStatus, MAX_ATTEMPTS,
    MAX_LOST_LEASES, Progress, TIMED_KINDS, is_undo_kind, undo_of,
};
pub use job_key::JobKey;
pub use lane::{JobLane, JobLaneQuery, LaneState, QueuedJob};
pub use lane_key::LaneKey;
pub use lease::{JobLease, JobLeaseQuery, LEASE};
pub use moves::JobMove;
use step::MAX_OUTPUT_BYTES;
pub use step::{FirstLook, JobError, Step, StepStatus, effect_key};
pub use transition::apply;
pub use trigger::{Failure, LanePlace, Moved, Refusal, Report, Trigger};
pub use undo::{effects_landed_at, left_by, left_output, undo_job, undone_steps};
