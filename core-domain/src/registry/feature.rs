//! Feature activations of entities, and the manifest of an entity's active features (interface: "Feature activation").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{FeatureId, MAX_FREE_FORM_BYTES, NewFeatureId, feature_worker_name};
use crate::kernel::{
    BoundedJson, EntityId, Environment, FeatureActivationId, IllegalTransition, JobId, JsonText,
    Line, Machine, PlatformId, Slug, StackId, Timestamp, hex, record, state_machine, text_enum,
};

/// The version of a feature: any text of 1 to 100 characters on one line.
pub type FeatureVersion = Line<1, 100>;

/// A feature of an entity in one environment. The first activation creates the record; deactivation keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct FeatureActivation {
    /// The id of the activation. It stays the same when the feature is activated again.
    pub id: FeatureActivationId,
    /// The platform that the entity belongs to.
    pub platform_id: PlatformId,
    /// The entity that has the feature.
    pub entity_id: EntityId,
    /// The id of the feature. An entity has a feature at most once per environment.
    pub feature_id: FeatureId,
    /// The version of the feature that was requested last.
    pub feature_version: FeatureVersion,
    /// The environment in which the feature runs.
    pub environment: Environment,
    /// The status of the feature in its environment.
    pub status: FeatureStatus,
    /// When the feature last became active. `null` from an activation request until the feature is active.
    pub activated_at: Option<Timestamp>,
    /// When the feature was last removed. `null` if it has not been removed since the last activation request.
    pub deactivated_at: Option<Timestamp>,
    /// When the feature was first requested for the entity and environment.
    pub created_at: Timestamp,
    /// When the record was last changed.
    pub updated_at: Timestamp,
    /// The job that activates or deactivates the feature, or did so last. `None` after the feature ended with its
    /// entity or environment, unless a job removed its worker.
    #[serde(skip)]
    pub provision_job_id: Option<JobId>,
    /// The URL at which the feature is served, as its job reported it. An activation request and the removal of the
    /// feature clear it.
    #[serde(skip)]
    pub service_url: Option<String>,
    /// The name of the package that implements the feature.
    #[serde(skip)]
    pub package: FeatureId,
    /// The workspace stack that the feature belongs to and with which it is removed. `None` if the feature was
    /// requested on its own.
    #[serde(skip)]
    pub stack_id: Option<StackId>,
    /// The configuration of the feature, an object. `None` if it was activated without one. The feature's worker gets it
    /// as a module.
    #[serde(skip)]
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(strategy = "proptest::option::of(crate::kernel::strategy::json_text())")
    )]
    pub config: Option<JsonText>,
}

record! {
    FeatureActivation as "feature" by id, asked FeatureActivationQuery;
    of platform_id;
    audited, touched updated_at;
}

/// Queries for feature activations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeatureActivationQuery {
    /// The features of an entity, newest first.
    OfEntity {
        /// The entity that has the features.
        entity_id: EntityId,
        /// Restricts the result to features in use, see [`FeatureStatus::is_in_use`].
        in_use: bool,
    },
    /// The activation of one feature.
    Exactly {
        /// The entity that has the feature.
        entity_id: EntityId,
        /// The environment in which the feature runs.
        environment: Environment,
        /// The id of the feature.
        feature_id: FeatureId,
    },
    /// The features of an entity in an environment, ordered by feature id.
    ByFeature {
        /// The entity that has the features.
        entity_id: EntityId,
        /// The environment in which the features run.
        environment: Environment,
        /// Restricts the result to active features.
        active: bool,
    },
    /// The features of the platform, newest first.
    OfPlatform {
        /// Restricts the result to this environment. `None` means all environments.
        environment: Option<Environment>,
        /// Includes inactive features.
        inactive: bool,
    },
}

/// Request body that activates a feature of an entity.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActivateFeature {
    /// The id of the feature to activate.
    pub feature_id: NewFeatureId,
    /// The version of the feature to activate.
    pub version: FeatureVersion,
    /// The environment in which the feature will run.
    pub environment: Environment,
    /// The configuration of the feature, an object. `None` keeps the configuration of an existing feature.
    #[serde(skip)]
    pub config: Option<JsonText>,
}

/// Request body that activates a feature of a platform: of its default tenant, in production.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActivatePlatformFeature {
    /// The id of the feature to activate.
    pub feature_id: NewFeatureId,
    /// The version of the feature to activate.
    pub version: FeatureVersion,
    /// The configuration of the feature: a JSON object of at most 64 KiB. Default: `{}`.
    #[serde(default = "BoundedJson::<MAX_FREE_FORM_BYTES>::empty_object")]
    #[schemars(extend("type" = "object"))]
    pub config: BoundedJson<MAX_FREE_FORM_BYTES>,
}

impl From<ActivatePlatformFeature> for ActivateFeature {
    fn from(command: ActivatePlatformFeature) -> Self {
        Self {
            feature_id: command.feature_id,
            version: command.version,
            environment: Environment::Prod,
            config: Some(command.config.into()),
        }
    }
}

/// Request body that deactivates a feature of an entity.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeactivateFeature {
    /// The id of the feature to deactivate.
    pub feature_id: FeatureId,
    /// The environment in which the feature runs.
    pub environment: Environment,
}

impl FeatureActivation {
    /// Creates an activation with the status `pending` and without a job.
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
            config: command.config,
        }
    }

    /// Applies an event. Updates `activated_at`, `deactivated_at` and `service_url` to match the new status.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the event is not allowed in the current status.
    pub fn apply_event(
        mut self,
        event: FeatureEvent,
        now: Timestamp,
    ) -> Result<Self, IllegalTransition> {
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

    /// Returns the configuration of the feature; `{}` if it was activated without one.
    #[must_use]
    pub fn effective_config(&self) -> JsonText {
        let config = self.config.clone();
        config.unwrap_or_else(|| JsonText::of(&serde_json::json!({})))
    }

    /// Returns whether the provider may still have an object of the feature. `false` only if a job of the feature has
    /// removed it.
    #[must_use]
    pub const fn may_be_provided(&self) -> bool {
        !matches!(self.status, FeatureStatus::Inactive) || self.provision_job_id.is_none()
    }

    /// Returns the name of the feature's worker at the provider. `slug` is the slug of the platform.
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

text_enum! {
    /// The status of a feature.
    pub enum FeatureStatus {
        /// The feature is requested; a job provisions it.
        Pending = "pending",
        /// The feature is provisioned and in use.
        Active = "active",
        /// The removal is requested; a job removes the feature.
        Deactivating = "deactivating",
        /// The feature is removed. It can be activated again.
        Inactive = "inactive",
        /// The last job of the feature stopped without success.
        Failed = "failed",
    }
}

impl FeatureStatus {
    /// Returns whether the feature is active or a job works on it. An entity that has such a feature can be deleted
    /// only with `cascade`.
    #[must_use]
    pub const fn is_in_use(self) -> bool {
        matches!(self, Self::Pending | Self::Active | Self::Deactivating)
    }
}

state_machine! {
    /// Events of a feature, which is created `pending`. An operator may resume a failed job (`activate`, `deactivate`)
    /// or declare it done (`activated`, `deactivated`).
    pub enum FeatureEvent moves FeatureStatus {
        /// A caller requests the feature.
        Activate = "activate": [Inactive, Failed] => Pending, "feature.activation_queued";
        /// The job has provisioned the feature.
        Activated = "activated": [Pending, Failed] => Active, "feature.activated";
        /// A caller requests the removal of the feature.
        Deactivate = "deactivate": [Pending, Active, Failed] => Deactivating, "feature.deactivation_queued";
        /// The job has removed the feature.
        Deactivated = "deactivated": [Deactivating, Failed] => Inactive, "feature.deactivated";
        /// The job stopped without success.
        Fail = "fail": [Pending, Deactivating] => Failed, "feature.failed";
        /// The entity or environment of the feature is removed, and the feature with it.
        End = "end": [Pending, Active, Deactivating, Failed] => Inactive, "feature.ended";
    }
}

/// The active features of an entity in an environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureManifest {
    /// The platform that the entity belongs to.
    pub platform_id: PlatformId,
    /// The entity that has the features.
    pub entity_id: EntityId,
    /// The environment in which the features run.
    pub environment: Environment,
    /// When the manifest was generated, which is the time of the request.
    pub generated_at: Timestamp,
    /// The active features, ordered by id.
    pub features: Vec<ManifestFeature>,
}

/// An active feature in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestFeature {
    /// The id of the feature.
    pub id: FeatureId,
    /// The active version of the feature.
    pub version: FeatureVersion,
    /// The name of the package that implements the feature.
    pub package: FeatureId,
    /// The URL at which the feature is served. `null` if it is unknown because an operator declared the feature active.
    pub service_url: Option<String>,
    /// The status of the feature, always `active`.
    pub status: FeatureStatus,
}

impl From<&FeatureActivation> for ManifestFeature {
    fn from(activation: &FeatureActivation) -> Self {
        Self {
            id: activation.feature_id.clone(),
            version: activation.feature_version.clone(),
            package: activation.package.clone(),
            service_url: activation.service_url.clone(),
            status: activation.status,
        }
    }
}

impl FeatureManifest {
    /// Returns the SHA-256 digest of the features, in hexadecimal. It distinguishes the contents of manifests
    /// regardless of when they were generated.
    #[must_use]
    pub fn digest(&self) -> String {
        hex(&Sha256::digest(JsonText::of(&self.features).as_str()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::kernel::assert_only_table_moves;

    use super::*;

    proptest! {
        #[test]
        fn random_events_follow_the_transition_table(
            events in prop::collection::vec(prop::sample::select(FeatureEvent::ALL), 1..30),
        ) {
            assert_only_table_moves(FeatureStatus::Pending, &events);
        }
    }
}
