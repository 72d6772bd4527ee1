//! Tests of the export of traces to a real collector over a socket.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

mod configuration;
mod exporting;
mod pipeline;
mod tls;
mod world;
