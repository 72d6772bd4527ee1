//! The deploy backend: the behaviour of its endpoints that the generated tests do not cover.

mod callers;
mod deployments;
mod harness;
mod limits;
mod logs;
mod lost_commit;
mod room;
mod uploads;
