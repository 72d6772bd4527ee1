//! The command line's service: what its endpoints do, beyond what holds for every endpoint.

mod callers;
mod deployments;
mod harness;
mod limits;
mod lost_commit;
mod room;
mod uploads;
