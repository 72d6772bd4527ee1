//! Whole-suite tests: what no single crate can say about itself.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail by panicking"
)]

mod architecture;
mod crash;
mod deploys;
mod jobs;
mod matrix;
mod people;
mod process;
mod slice;
mod stores;
mod support;
