//! Features of entities (interface: "Feature activation").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    FeatureEvent, FeatureId, FeatureStatus, FeatureVersion, NewFeatureId, feature_worker_name,
};
use crate::kernel::{
    EntityId, Environment, FeatureActivationId, IllegalMove, JobId, Machine, PlatformId, Slug,
    StackId, Timestamp, record,
};

/// A feature of an entity in an environment, from its first activation on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct FeatureActivation {
    /// The activation's id; the same however often the feature is activated.
    pub id: FeatureActivationId,
    /// The platform.
    pub platform_id: PlatformId,
    /// The entity that has the feature.
    pub entity_id: EntityId,
    /// The feature; an entity has it once in an environment.
    pub feature_id: FeatureId,
    /// Its version.
    pub feature_version: FeatureVersion,
    /// Where it runs.
    pub environment: Environment,
    /// Where it stands.
    pub status: FeatureStatus,
    /// When it last became active; `None` once it is asked for again.
    pub activated_at: Option<Timestamp>,
    /// When it was last removed; `None` once it is asked for again.
    pub deactivated_at: Option<Timestamp>,
    /// When it was first asked for.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// The job that moves it; none once it has ended with its place.
    #[serde(skip)]
    pub provision_job_id: Option<JobId>,
    /// Where it is served.
    #[serde(skip)]
    pub service_url: Option<String>,
    /// The name of its package.
    #[serde(skip)]
    pub package: FeatureId,
    /// The workspace stack it was last activated for, and with which it goes; none when it was asked for by itself.
    #[serde(skip)]
    pub stack_id: Option<StackId>,
}

record! {
    FeatureActivation as "feature" by id, asked FeatureActivationQuery;
    of platform_id;
    audited, touched updated_at;
}

/// Questions about features.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeatureActivationQuery {
    /// Those of an entity, newest first.
    OfEntity {
        /// The entity.
        entity_id: EntityId,
        /// Only those that are in use, see [`FeatureStatus::is_in_use`].
        in_use: bool,
    },
    /// This feature.
    Exactly {
        /// The entity.
        entity_id: EntityId,
        /// The environment.
        environment: Environment,
        /// The feature.
        feature_id: FeatureId,
    },
    /// Those of an entity in an environment, by feature.
    ByFeature {
        /// The entity.
        entity_id: EntityId,
        /// The environment.
        environment: Environment,
        /// Only active ones.
        active: bool,
    },
    /// Those of the platform, newest first.
    OfPlatform {
        /// In this environment alone.
        environment: Option<Environment>,
        /// Inactive ones too.
        inactive: bool,
    },
}

/// Activates a feature of an entity.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActivateFeature {
    /// The feature.
    pub feature_id: NewFeatureId,
    /// The version.
    pub version: FeatureVersion,
    /// Where it shall run.
    pub environment: Environment,
}

/// Deactivates a feature of an entity.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeactivateFeature {
    /// The feature.
    pub feature_id: FeatureId,
    /// Where it runs.
    pub environment: Environment,
}

impl FeatureActivation {
    /// A feature that was not activated before; it has no job yet.
    #[must_use]
    pub fn create(
        id: FeatureActivationId,
        platform_id: PlatformId,
        entity_id: EntityId,
        command: ActivateFeature,
        now: Timestamp,
    ) -> Self {
        let feature_id = FeatureId::from(command.feature_id);
        Self {
            id,
            platform_id,
            entity_id,
            package: feature_id.clone(),
            feature_id,
            feature_version: command.version,
            environment: command.environment,
            status: FeatureStatus::Pending,
            activated_at: None,
            deactivated_at: None,
            created_at: now,
            updated_at: now,
            provision_job_id: None,
            service_url: None,
            stack_id: None,
        }
    }

    /// The feature after an event. When it came and went is noted by itself.
    ///
    /// # Errors
    /// [`IllegalMove`] when it cannot happen to it.
    pub fn after(mut self, event: FeatureEvent, now: Timestamp) -> Result<Self, IllegalMove> {
        self.status = event.next(self.status)?;
        match self.status {
            FeatureStatus::Pending => {
                self.activated_at = None;
                self.deactivated_at = None;
                self.service_url = None;
            }
            FeatureStatus::Active => self.activated_at = Some(now),
            FeatureStatus::Inactive => {
                self.deactivated_at = Some(now);
                self.service_url = None;
            }
            FeatureStatus::Deactivating | FeatureStatus::Failed => {}
        }
        if event == FeatureEvent::End {
            self.provision_job_id = None;
        }
        Ok(self)
    }

    /// Whether something of it may be at the provider: not after a job of its own has removed it.
    #[must_use]
    pub const fn may_be_provided(&self) -> bool {
        !matches!(self.status, FeatureStatus::Inactive) || self.provision_job_id.is_none()
    }

    /// The name of its worker at the provider, on a platform with this slug.
    #[must_use]
    pub fn worker_name(&self, slug: &Slug) -> String {
        feature_worker_name(
            &self.platform_id,
            slug,
            &self.entity_id,
            &self.feature_id,
            self.environment,
        )
    }
}
