//! Mails by a real SMTP server on loopback.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper of a test fails with the test"
)]

mod encryption;
mod replies;
mod sending;
mod server;
