//! The registry: what its endpoints do, beyond what holds for every endpoint.

mod audit;
mod config;
mod deployment_records;
mod entities;
mod lifecycle;
mod model;
mod onboarding;
mod platforms;
mod removal;
mod resources;
mod stores;
mod workspace_stacks;
