//! Tests of the store on a pool of sqlx.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests may panic as tests do"
)]

mod conformance;
mod dropped;
mod hints;
mod notices;
mod world;
