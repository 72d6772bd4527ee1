//! Provisioning through its tower service, over the memory store.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

mod creating;
mod jobs;
mod onboarding;
mod suspension;
mod waiting;
mod world;
