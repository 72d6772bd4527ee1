//! The targets of jobs: the platform, environment and workspace stack that a job works on.

use std::fmt::Debug;

use serde::{Deserialize, Serialize};

use super::platform_object::PlatformEnvironment;
use crate::access::PlatformAccess;
use crate::kernel::{
    Email, EntityId, Environment, Error, PlatformId, PlatformOwned, Result, Slug, StackId,
};
use crate::port::{ResourceRef, UnitOfWork};
use crate::provisioning::LaneKey;
use crate::registry::{PlatformStatus, stack_resource_name};
use crate::stacks::{PartId, StackPart};
use crate::use_case::provisioning::{JobInput, JobKind, StepError};
use crate::use_case::registry::entity_tree;

/// A kind whose jobs work on a platform.
pub(in crate::use_case) trait PlatformKind:
    JobKind<Input: JobInput<Owner = PlatformOwned>>
{
}

impl<K: JobKind<Input: JobInput<Owner = PlatformOwned>>> PlatformKind for K {}

/// Returns the id of the platform that a job works on.
///
/// # Errors
/// `INTERNAL_ERROR` if the input of the kind has none.
pub(super) fn platform_id_of<I: JobInput<Owner = PlatformOwned>>(input: &I) -> Result<&PlatformId> {
    let missing = || Error::Internal("the input of the job has no platform".to_owned());
    input.platform_id().ok_or_else(missing)
}

/// Returns the platform. Returns [`StepError::Precondition`] if the platform or the entity no longer exists, so that
/// jobs after a deletion fail fast.
pub(super) async fn ensure_not_deleted<'p>(
    uow: &mut dyn UnitOfWork,
    platform: Option<&'p PlatformAccess>,
    entity: Option<&EntityId>,
) -> Result<&'p PlatformAccess, StepError> {
    let platform = platform.filter(|p| p.platform().status != PlatformStatus::Deleted);
    let Some(platform) = platform else {
        return Err(StepError::Precondition("the platform is gone".to_owned()));
    };
    let Some(entity) = entity else {
        return Ok(platform);
    };
    match entity_tree::not_deleted(platform, uow, entity).await {
        Err(Error::NotFound(_)) => Err(StepError::Precondition("the entity is gone".to_owned())),
        outcome => Ok(outcome.map(|_| platform)?),
    }
}

/// The platform and environment of a provisioning job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The id of the platform.
    pub platform_id: PlatformId,
    /// The slug of the platform, a part of the names at the provider.
    pub slug: Slug,
    /// The entity that owns the resources; `None` means the platform's default tenant.
    pub entity_id: Option<EntityId>,
    /// The environment in which the resources run.
    pub environment: Environment,
    /// The billing plan of the platform.
    pub plan_tier: String,
    /// The email address for invoices.
    pub billing_email: Option<Email>,
}

impl Target {
    /// Returns the environment in which the resources are created.
    pub(in crate::use_case::registry) const fn at(&self) -> PlatformEnvironment<'_> {
        PlatformEnvironment {
            platform_id: &self.platform_id,
            slug: &self.slug,
            environment: self.environment,
        }
    }
}

impl JobInput for Target {
    type Owner = PlatformOwned;

    fn lane(&self) -> LaneKey {
        LaneKey::platform(&self.platform_id)
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.platform_id)
    }

    fn entity_id(&self) -> Option<&EntityId> {
        self.entity_id.as_ref()
    }

    fn environment(&self) -> Option<Environment> {
        Some(self.environment)
    }
}

/// An input of a kind that creates resources of a platform.
pub trait HasTarget: JobInput<Owner = PlatformOwned> {
    /// Returns the platform and environment for which the resources are created.
    fn target(&self) -> &Target;
}

impl HasTarget for Target {
    fn target(&self) -> &Target {
        self
    }
}

/// The workspace stack of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct StackTarget {
    pub(in crate::use_case::registry) platform_id: PlatformId,
    /// The slug of the platform, a part of the names at the provider.
    pub(in crate::use_case::registry) slug: Slug,
    pub(in crate::use_case::registry) entity_id: EntityId,
    pub(in crate::use_case::registry) environment: Environment,
    pub(in crate::use_case::registry) stack_instance_id: StackId,
}

impl StackTarget {
    /// Returns the name of a part at the provider.
    pub(super) fn name_of(&self, part: &PartId) -> String {
        let (platform, environment) = (&self.platform_id, self.environment);
        let (stack, name, key) = (&self.stack_instance_id, part.name.as_str(), part.key());
        stack_resource_name(platform, &self.slug, environment, stack, name, &key)
    }

    /// Returns the parts with their names at the provider.
    pub(in crate::use_case::registry) fn plan_parts(
        &self,
        parts: &[StackPart],
    ) -> Vec<PlannedPart> {
        let planned = parts.iter().map(|part| PlannedPart {
            cf_name: self.name_of(&part.id),
            id: part.id.clone(),
        });
        planned.collect()
    }
}

/// A part that a job creates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct PlannedPart {
    #[serde(flatten)]
    pub(in crate::use_case::registry) id: PartId,
    pub(in crate::use_case::registry) cf_name: String,
}

impl PlannedPart {
    /// Returns the name of the step that creates the part.
    pub(in crate::use_case::registry) fn step(&self) -> String {
        format!("{}:{}", self.id.resource_type, self.id.name)
    }

    /// Returns the name and type of the part at the provider.
    pub(in crate::use_case::registry) fn object(&self) -> ResourceRef {
        ResourceRef {
            resource_type: self.id.resource_type,
            name: self.cf_name.clone(),
        }
    }
}
