//! Tests of the adapter with real Redis servers, which the tests start.

#![cfg(unix)]
#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a helper of a test fails with the test"
)]

mod connections;
mod limits;
mod notices;
mod world;
