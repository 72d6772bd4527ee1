//! Tests of the job engine on every store.

mod audit;
mod batches;
mod crash;
mod driver;
mod due;
mod engine;
mod first_look;
mod keys;
mod kinds;
mod locked_lanes;
mod model;
mod overdue;
mod promises;
mod races;
mod search;
mod simulation;
mod undo;
mod unfinished;

pub(crate) use audit::{assert_invariants, assert_records_consistent};
pub(crate) use batches::queue_orders;
pub(crate) use locked_lanes::up_to_last_reports;
