//! The job engine on every store.

mod audit;
mod batches;
mod crash;
mod driver;
mod engine;
mod kinds;
mod model;
mod promises;
mod races;
mod search;
mod simulation;
