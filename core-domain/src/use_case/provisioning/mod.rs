//! Provisioning: queueing, claiming and moving jobs, holds, and the operators' grip on them.
//!
//! Every change of a job goes through one function, `carry::carry_out`: it asks the state machine, and writes the job,
//! its lease, its lane, its history and its dead letter in the caller's unit of work.

mod carry;
mod claim;
mod engine;
mod enqueue;
mod holds;
mod jobs;
mod operate;
mod sweep;
mod work;

pub use claim::{Claimed, claim};
pub use engine::{Outcome, StepEnd, StepWork, Supervisor, Unsupervised, Worker};
pub use enqueue::{NewJob, enqueue};
pub use holds::{hold, hold_reason, release_hold};
pub use jobs::{JobFilter, events, get, lease_of, list};
pub use operate::{cancel, force_complete, replay, retry};
pub use sweep::{Swept, recover, signal, sweep};
pub use work::{Grip, Holder, heartbeat, report};
