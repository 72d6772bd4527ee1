//! The job engine on every store.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod audit;
mod crash;
mod driver;
mod engine;
mod model;
mod races;
mod world;
