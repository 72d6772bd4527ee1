//! Integration tests of the HTTP services. Most call a service in process, through its tower service.

#![expect(clippy::unwrap_used, reason = "a failing helper fails its test")]

mod billing;
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
