//! The registry: platforms, entities, infrastructure resources and their secrets, features, builds, workspace stacks,
//! DNS records, custom domains, configuration, deployment records, onboardings, and lifecycle records.
//!
//! A record is what the interface returns; a command is a request that changes records. Every status has one state
//! machine (`*Event`). Its transition function, audit actions and property test are derived from it.

mod build;
mod config;
mod custom_domain;
mod deployment;
mod dns_record;
mod entity;
mod feature;
mod feature_id;
mod hostname;
mod onboarding;
mod platform;
mod resource;
mod resource_name;
mod secret;
mod workspace_stack;

pub use build::{Build, BuildOutcome, BuildQuery, BuildStatus, BuildTrigger, UpdateBuild};
pub use config::{
    ConfigDiff, ConfigKey, ConfigVersion, ConfigVersionNumber, ConfigVersionQuery, DiffVersions,
    MAX_FREE_FORM_BYTES, PlatformConfig, PlatformConfigQuery, RollBackConfig, SetConfig,
};
pub use custom_domain::{
    AddCustomDomain, CreateCustomDomain, CustomDomain, CustomDomainEvent, CustomDomainQuery,
    CustomDomainStatus, SslStatus, UpdateCustomDomain,
};
pub use deployment::{
    BRANCH_PATTERN, Branch, CreateDeployment, Deployment, DeploymentChange, DeploymentEvent,
    DeploymentFilter, DeploymentMessage, DeploymentPhase, DeploymentQuery, DeploymentStatus,
    PRODUCTION,
};
pub use dns_record::{
    CreateDnsRecord, DnsRecord, DnsRecordEvent, DnsRecordQuery, DnsRecordStatus, DnsTargetType,
    NewDnsRecord,
};
pub use entity::{
    CreateEntity, DeleteEntity, Entity, EntityEvent, EntityFilter, EntityQuery, EntityStatus,
    EntityType, MAX_DEPTH, PlacementError, UpdateEntity, child_depth,
};
pub use feature::{
    ActivateFeature, ActivatePlatformFeature, DeactivateFeature, FeatureActivation,
    FeatureActivationQuery, FeatureEvent, FeatureManifest, FeatureStatus, FeatureVersion,
    ManifestFeature,
};
pub use feature_id::{FeatureId, NewFeatureId};
pub use hostname::{DnsRecordType, Hostname, MissingRecord};
pub use onboarding::{
    Onboarding, OnboardingEvent, OnboardingQuery, OnboardingStatus, OnboardingTier, StartOnboarding,
};
pub use platform::{
    AccountName, CreatePlatform, LifecycleQuery, LifecycleRecord, Platform, PlatformEvent,
    PlatformOwner, PlatformQuery, PlatformRefusal, PlatformStatus, RESTORE_PERIOD, SettableStatus,
    Tier, UpdatePlatform,
};
pub use resource::{
    CreateResource, ProviderName, Resource, ResourceEvent, ResourceQuery, ResourceStatus,
    ResourceType, UpdateResource,
};
pub use resource_name::{
    AUTH, DEFAULT_RESOURCES, NameOwner, auth_worker_name, environment_in, feature_worker_name,
    is_name_of_platform, is_provider_name, name_holder, purpose_of, resource_name,
    stack_resource_name,
};
pub use secret::{
    ResourceSecret, ResourceSecretQuery, SecretName, SecretStatus, SetResourceSecret,
};
pub use workspace_stack::{
    ActivatedVersion, CreateWorkspaceStack, WorkspaceStack, WorkspaceStackEvent,
    WorkspaceStackFilter, WorkspaceStackQuery, WorkspaceStackStatus,
};
