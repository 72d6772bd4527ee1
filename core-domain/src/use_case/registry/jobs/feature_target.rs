//! What a job of a feature works for, and whether it is still called for.

use serde::{Deserialize, Serialize};

use super::resource::{ensure_wanted, entry_of};
use crate::access::PlatformAccess;
use crate::kernel::{
    EntityId, Environment, FeatureActivationId, PlatformId, PlatformOwned, Result, Slug, Stored,
};
use crate::port::{Mode, ResourceRef, UnitOfWork};
use crate::provisioning::LaneKey;
use crate::registry::{
    FeatureActivation, FeatureId, FeatureStatus, FeatureVersion, Resource, ResourceType,
};
use crate::use_case::provisioning::{JobInput, JobKind, StepContext, StepError};

/// The feature a job works for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct FeatureTarget {
    pub(super) activation_id: FeatureActivationId,
    pub(super) platform_id: PlatformId,
    pub(super) entity_id: EntityId,
    pub(super) feature_id: FeatureId,
    pub(in crate::use_case::registry) environment: Environment,
    /// The name of the feature's worker at the provider.
    pub(super) cf_name: String,
}

/// What is to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct ActivateInput {
    #[serde(flatten)]
    pub(in crate::use_case::registry) target: FeatureTarget,
    pub(in crate::use_case::registry) version: FeatureVersion,
}

/// What is to be removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct DeactivateInput {
    #[serde(flatten)]
    pub(in crate::use_case::registry) target: FeatureTarget,
    /// Its data too.
    #[serde(default)]
    pub(in crate::use_case::registry) delete_data: bool,
}

macro_rules! of_feature {
    ($($input:ty),+) => {$(
        impl JobInput for $input {
            type Owner = PlatformOwned;

            fn lane(&self) -> LaneKey {
                LaneKey::platform(&self.target.platform_id)
            }

            fn platform_id(&self) -> Option<&PlatformId> {
                Some(&self.target.platform_id)
            }

            fn entity_id(&self) -> Option<&EntityId> {
                Some(&self.target.entity_id)
            }

            fn environment(&self) -> Option<Environment> {
                Some(self.target.environment)
            }
        }
    )+};
}
of_feature!(ActivateInput, DeactivateInput);

impl FeatureTarget {
    /// A feature on a platform with this slug.
    pub(in crate::use_case::registry) fn of(feature: &FeatureActivation, slug: &Slug) -> Self {
        Self {
            activation_id: feature.id.clone(),
            platform_id: feature.platform_id.clone(),
            entity_id: feature.entity_id.clone(),
            feature_id: feature.feature_id.clone(),
            environment: feature.environment,
            cf_name: feature.worker_name(slug),
        }
    }

    /// The feature's worker.
    pub(in crate::use_case::registry) fn worker(&self) -> ResourceRef {
        ResourceRef {
            resource_type: ResourceType::Worker,
            name: self.cf_name.clone(),
        }
    }

    /// The entry of the feature's worker, if there is one.
    pub(super) async fn entry(
        &self,
        platform: &PlatformAccess,
        uow: &mut dyn UnitOfWork,
    ) -> Result<Option<Stored<Resource>>> {
        entry_of(platform, uow, &self.worker()).await
    }

    /// Refuses a job whose platform or entity is gone, or whose feature was asked for or ended otherwise since. The one
    /// that makes a feature goes on for a removal that waits behind it.
    pub(super) async fn ensure_called_for<K: JobKind>(
        &self,
        cx: &StepContext<'_, K>,
    ) -> Result<(), StepError> {
        let mut uow = cx.store.begin(Mode::Read).await?;
        let platform = cx.platform(uow.as_mut()).await?;
        let entity = Some(&self.entity_id);
        let platform = ensure_wanted(uow.as_mut(), platform.as_deref(), entity).await?;
        let feature = platform.records::<FeatureActivation>(uow.as_mut());
        let feature = feature.find(&self.activation_id).await?;
        let called_for = |feature: &FeatureActivation| {
            feature.provision_job_id.as_ref() == Some(&cx.job.id)
                || feature.status == FeatureStatus::Deactivating
        };
        if feature.is_some_and(|feature| called_for(&feature)) {
            return Ok(());
        }
        let called_off = "the feature was asked for or ended otherwise since";
        Err(StepError::Precondition(called_off.to_owned()))
    }
}
