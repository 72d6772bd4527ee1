//! The registry: platforms, entities, infrastructure resources and their secrets, features, builds, workspace stacks,
//! DNS records, custom domains, configuration, deployment records, onboardings, lifecycle.
//!
//! A record is what the interface shows, a command is what it takes. Every status has one state machine (`*Event`), from
//! which its transition function, its audit actions and its property test come.

mod branch;
mod build;
mod config;
mod config_version;
mod custom_domain;
mod custom_domain_moves;
mod custom_domain_status;
mod deployment;
mod deployment_moves;
mod deployment_status;
mod dns_record;
mod entity;
mod entity_rules;
mod feature;
mod feature_id;
mod feature_manifest;
mod feature_status;
mod hostname;
mod hostname_proof;
mod lifecycle;
mod onboarding;
mod platform;
mod platform_moves;
mod platform_status;
mod resource;
mod resource_moves;
mod resource_name;
mod resource_status;
mod secret;
mod workspace_stack;
mod workspace_stack_status;

pub use branch::{BRANCH_PATTERN, Branch, PRODUCTION};
pub use build::{Build, BuildEnd, BuildQuery, BuildStatus, BuildTrigger, UpdateBuild};
pub use config::{
    ConfigKey, MAX_FREE_FORM_BYTES, PlatformConfig, PlatformConfigQuery, RollBackConfig, SetConfig,
};
pub use config_version::{
    ConfigDiff, ConfigVersion, ConfigVersionNumber, ConfigVersionQuery, DiffVersions,
};
pub use custom_domain::{
    AddCustomDomain, CreateCustomDomain, CustomDomain, CustomDomainQuery, UpdateCustomDomain,
};
pub use custom_domain_status::{CustomDomainEvent, CustomDomainStatus, SslStatus};
pub use deployment::{
    CreateDeployment, Deployment, DeploymentFilter, DeploymentPhase, DeploymentQuery,
};
pub use deployment_moves::DeploymentChange;
pub use deployment_status::{DeploymentEvent, DeploymentStatus};
pub use dns_record::{
    CreateDnsRecord, DnsRecord, DnsRecordEvent, DnsRecordQuery, DnsRecordStatus, DnsTargetType,
    NewDnsRecord,
};
pub use entity::{
    CreateEntity, DeleteEntity, Entity, EntityEvent, EntityFilter, EntityQuery, EntityStatus,
    EntityType, UpdateEntity,
};
pub use entity_rules::{MAX_DEPTH, PlacementError, child_depth};
pub use feature::{ActivateFeature, DeactivateFeature, FeatureActivation, FeatureActivationQuery};
pub use feature_id::{FeatureId, FeatureVersion, NewFeatureId};
pub use feature_manifest::{FeatureManifest, ManifestFeature};
pub use feature_status::{FeatureEvent, FeatureStatus};
pub use hostname::Hostname;
pub use hostname_proof::{DnsRecordType, MissingRecord};
pub use lifecycle::{LifecycleQuery, LifecycleRecord};
pub use onboarding::{
    Onboarding, OnboardingEvent, OnboardingQuery, OnboardingStatus, OnboardingTier, StartOnboarding,
};
pub use platform::{
    AccountName, CreatePlatform, Platform, PlatformOwner, PlatformQuery, SettableStatus, Tier,
    UpdatePlatform,
};
pub use platform_moves::{PlatformRefusal, RESTORABLE_FOR};
pub use platform_status::{PlatformEvent, PlatformStatus};
pub use resource::{
    CreateResource, ProviderName, Resource, ResourceQuery, ResourceType, UpdateResource,
};
pub use resource_name::{
    AUTH, DEFAULT_RESOURCES, NameHolder, auth_worker_name, bears_platform, environment_in,
    feature_worker_name, is_provider_name, name_holder, purpose_of, resource_name,
    stack_resource_name,
};
pub use resource_status::{ResourceEvent, ResourceStatus};
pub use secret::{
    ResourceSecret, ResourceSecretQuery, SecretName, SecretStatus, SetResourceSecret,
};
pub use workspace_stack::{
    ActivatedVersion, CreateWorkspaceStack, WorkspaceStack, WorkspaceStackFilter,
    WorkspaceStackQuery,
};
pub use workspace_stack_status::{WorkspaceStackEvent, WorkspaceStackStatus};
