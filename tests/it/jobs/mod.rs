//! The job engine on every store.

mod audit;
mod batches;
mod crash;
mod driver;
mod due;
mod engine;
mod kinds;
mod locked_lanes;
mod model;
mod promises;
mod races;
mod search;
mod simulation;
mod undo;
mod unfinished;
