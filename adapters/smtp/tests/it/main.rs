//! Mails by a real SMTP server on loopback.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

mod encryption;
mod replies;
mod sending;
mod server;
