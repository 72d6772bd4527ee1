//! Tests of mails through a real SMTP server on the loopback interface.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a helper of a test fails with the test"
)]

mod encryption;
mod replies;
mod sending;
mod server;
