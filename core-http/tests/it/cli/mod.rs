//! The deploy backend: the behaviour of its endpoints that the generated tests do not cover.

mod callers;
mod deployments;
mod events;
mod features;
mod harness;
mod limits;
mod logs;
mod lost_commit;
mod plans;
mod redeploys;
mod room;
mod secrets;
mod uploads;
