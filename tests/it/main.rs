//! Whole-suite tests: what no single crate can say about itself.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod architecture;
mod crash;
mod deploys;
mod dying_store;
mod jobs;
mod matrix;
mod nodes;
mod people;
mod process;
mod registry_jobs;
mod slice;
mod stores;
mod support;
