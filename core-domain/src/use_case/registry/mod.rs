//! The registry's use cases, and what spans services: setting up an organization with its platform, onboarding,
//! suspension, the jobs that create and remove a platform's infrastructure.

pub mod audit;
pub mod auth;
pub mod build;
pub mod config;
pub mod deployment;
pub mod dns;
pub mod domain;
pub mod entity;
pub mod feature;
mod hostname;
pub mod hostname_check;
mod hostname_loss;
pub mod job_plan;
pub(super) mod jobs;
pub mod onboarding;
pub mod organization_removal;
pub mod organization_setup;
pub mod platform;
pub mod provision;
pub mod reconcile;
pub mod removal_plan;
pub mod resource;
pub mod secret;
mod slug;
pub mod stack_instance;
mod tenant_setup;
mod upserted;
pub mod workspace_stack;

pub use jobs::{HasTarget, MadeResource, MakeResource, Target, register_kinds};
pub use upserted::Upserted;
