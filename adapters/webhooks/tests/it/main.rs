//! Tests of webhooks to real receivers on the loopback interface.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

mod encryption;
mod receiver;
mod sending;
