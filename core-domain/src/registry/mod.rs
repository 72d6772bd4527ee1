//! The registry: platforms, entities, infrastructure resources, deployment records, onboardings, lifecycle.
//!
//! Every status has a table of moves (`*_MOVES`) and one pure function that makes them; the property tests are
//! generated from the tables.

mod deployment;
mod deployment_status;
mod entity;
mod entity_rules;
mod lifecycle;
mod onboarding;
mod platform;
mod platform_status;
mod resource;
mod resource_name;
mod resource_status;
mod status_move;

pub use deployment::{Deployment, DeploymentQuery};
pub use deployment_status::{DEPLOYMENT_MOVES, DeploymentChange, DeploymentStatus};
pub use entity::{Entity, EntityQuery, EntityStatus, EntityType};
pub use entity_rules::{ENTITY_MOVES, MAX_DEPTH, Misplaced, place};
pub use lifecycle::{LifecycleQuery, LifecycleRecord};
pub use onboarding::{Onboarding, OnboardingQuery, OnboardingStatus, OnboardingTier};
pub use platform::{Platform, PlatformQuery, Tier};
pub use platform_status::{
    PLATFORM_MOVES, PlatformEvent, PlatformMove, PlatformStatus, RESTORABLE_FOR, Refusal,
};
pub use resource::{Resource, ResourceQuery, ResourceType};
pub use resource_name::{PURPOSES, is_provider_name, purpose_of, resource_name};
pub use resource_status::{RESOURCE_MOVES, ResourceStatus};
pub use status_move::{StatusMove, allowed};
