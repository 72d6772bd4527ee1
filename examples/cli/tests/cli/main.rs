//! Tests of the program as a process, against a server that fails on purpose.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod commands;
mod deploying;
#[path = "../../../../core-client/tests/it/fake.rs"]
mod fake;
mod program;
mod sign_in;
