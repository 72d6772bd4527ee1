//! Provisioning jobs: the model and the state machine.
//!
//! A job is one record that contains its steps. [`JobMove`] lists every transition of a job; [`apply`] is the only
//! function that makes them. `use_case::provisioning` derives everything else from the job before and after a
//! transition: lease, lane, history and dead letter. It writes them in the same unit of work as the job.

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
