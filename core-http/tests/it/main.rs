//! The services through their tower services.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails with the test")]

mod cli;
mod gateway;
mod generated;
mod iam;
mod kernel;
mod provisioning;
mod registry;
mod serve;
mod stacks;
mod world;
