//! Use cases of the registry: platforms, entities, resources and their history, and the jobs that provision them.
//!
//! Some of them span services: creating an organization with its platform, onboarding, suspension, and the jobs that
//! create and remove a platform's infrastructure.

pub mod audit;
pub mod auth_worker;
pub mod build;
pub mod config;
pub mod custom_domain;
pub mod deployment;
pub mod dns_record;
pub mod entity;
mod entity_tree;
pub mod feature;
mod feature_state;
mod hostname;
pub mod hostname_proofs;
pub mod job_plan;
pub(super) mod jobs;
pub(in crate::use_case) mod limited_object;
pub mod onboarding;
pub mod platform;
pub mod provision;
pub mod reconcile;
pub mod removal_plan;
pub mod resource;
pub mod retention;
pub mod secret;
mod slug;
pub mod tenant;
mod upserted;
pub mod workspace_stack;

pub(in crate::use_case) use jobs::{
    CreateObject, CreatesObject, DefaultResource, ObjectProperties,
};
pub use jobs::{HasTarget, Target, register_kinds};
pub use upserted::Upserted;
