//! Deploying through the tower service, over the memory store.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

mod callers;
mod concurrent;
mod deploy;
mod description;
mod shown;
mod uploads;
mod world;
