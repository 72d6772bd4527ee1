//! Webhooks to real receivers on loopback.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

mod encryption;
mod receiver;
mod sending;
