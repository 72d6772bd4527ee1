//! Provisioning jobs: the model and the state machine.
//!
//! A job is one record that contains its steps. [`JobTransition`] lists every transition of a job; [`apply`] is the
//! only function that makes them. `use_case::provisioning` derives everything else from the job before and after a
//! transition: lease, lane, history and dead letter. It writes them in the same unit of work as the job.

mod backoff;
mod dlq;
mod event;
mod hold;
mod job;
mod lane;
mod lane_key;
mod step;
mod transition;
mod undo;

pub use backoff::retry_at;
pub use dlq::{DeadLetter, DlqQuery, DlqStatus};
pub use event::{JobEvent, JobEventQuery};
pub use hold::{DEPROVISION, HoldScope, HoldSource, JobHold, JobHoldQuery};
pub use job::{
    ACTIVATE_FEATURE, ADD_DOMAIN, Actor, DEFAULT_DEADLINE, DEFAULT_LEASE, FailureKind, Job, JobKey,
    JobLease, JobLeaseQuery, JobQuery, JobStatus, MAX_ATTEMPTS, MAX_LOST_LEASES, Progress,
    TIMED_KINDS, is_undo_kind, undo_kind_of,
};
pub use lane::{JobLane, JobLaneQuery, LaneState, QueuedJob};
pub use lane_key::LaneKey;
use step::MAX_OUTPUT_BYTES;
pub use step::{FirstObservation, JobError, Step, StepStatus, effect_key};
pub use transition::{
    Failure, JobTransition, LanePlace, Refusal, Report, Transition, Trigger, apply,
};
pub use undo::{effects_settled_at, kept_output, kept_reason, undo_job, undo_triggers};
