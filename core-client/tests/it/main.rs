//! Tests of the client against a server that fails on purpose.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod discovery;
mod event_streams;
mod fake;
mod requests;
mod uploads;
