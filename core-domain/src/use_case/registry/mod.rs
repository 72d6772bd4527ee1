//! The registry's use cases, and what spans services: setting up an organization with its platform, onboarding,
//! suspension, the jobs that make and remove a platform's infrastructure.

mod access;
mod audit;
mod deployments;
mod entities;
mod entity_delete;
mod jobs;
mod jobs_of_organization;
mod moves;
mod onboarding;
mod organization_setup;
mod platforms;
mod provision;
mod removal_plan;
mod resources;
mod suspension;

pub use access::{reach, reach_living};
pub use audit::{list_audit, list_platform_audit};
pub(super) use deployments::key_reused;
pub use deployments::{
    EarlierDeployments, NewDeployment, change_deployment, create_deployment, earlier_deployments,
    find_deployment, look_up_deployment,
};
pub use entities::{
    EntityChange, NewEntity, ancestors, create_entity, descendants, find_entity, list_entities,
    update_entity,
};
pub use entity_delete::delete_entity;
pub use jobs::{MakeResource, Target, kinds};
pub(super) use jobs::{as_asked_by, read_input, to_input};
pub use jobs_of_organization::{find_job, list_jobs};
pub use moves::{list_lifecycle, move_platform};
pub use onboarding::{StartOnboarding, find_onboarding, slug_is_available, start_onboarding};
pub use organization_setup::{OrganizationSetup, OrganizationSetupDone, organization_setup};
pub use platforms::{
    NewPlatform, PlatformChange, create_platform, find_platform, list_platforms, update_platform,
};
pub use provision::{Provision, deprovision_platform, provision_platform};
pub use removal_plan::{
    RemovalPlan, plan_entity_removal, plan_platform_removal, plan_resource_removal,
};
pub use resources::{
    NewResource, ResourceChange, create_resource, delete_resource, find_resource, list_resources,
    list_resources_of_entity, look_up_resource, update_resource,
};
pub use suspension::set_suspension;
