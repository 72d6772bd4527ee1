//! Tests of the adapter with a real S3 server, which the tests start.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

mod config;
mod contract;
mod failures;
mod large;
mod roles;
mod tls;
mod world;
