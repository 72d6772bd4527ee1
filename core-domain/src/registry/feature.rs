//! Features of entities (interface: "Feature activation").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::feature_worker_name;
use crate::kernel::{
    EntityId, Environment, FeatureActivationId, IllegalMove, JobId, JsonText, Line, Machine,
    PlatformId, READABLE_LINE, READABLE_SEGMENT, Slug, StackId, TextError, Timestamp, hex, record,
    state_machine, text, text_enum,
};

/// What stands in the place of a feature in paths.
const RESERVED: [&str; 2] = ["activate", "deactivate"];

text! {
    /// The id of a feature, which is the name of its package: 1 to 100 characters on one line, and not `activate` or
    /// `deactivate`.
    FeatureId,
    feature_id,
    { "type": "string", "minLength": 1, "maxLength": 100, "pattern": READABLE_LINE, "examples": ["search"] }
}

fn feature_id(text: &str) -> Result<String, TextError> {
    let line = Line::<1, 100>::parse(text)?;
    if RESERVED.contains(&line.as_str()) {
        return Err(TextError::Malformed);
    }
    Ok(line.as_str().to_owned())
}

text! {
    /// The id of a feature that is activated: a [`FeatureId`] that stands in a path as one segment, with no slash or
    /// backslash in it, and not `.` or `..`. Features that were activated before this was asked keep their ids.
    NewFeatureId,
    new_feature_id,
    { "type": "string", "minLength": 1, "maxLength": 100, "pattern": READABLE_SEGMENT, "examples": ["search"] }
}

fn new_feature_id(text: &str) -> Result<String, TextError> {
    let id = feature_id(text)?;
    if [".", ".."].contains(&id.as_str()) || id.contains(['/', '\\']) {
        return Err(TextError::Malformed);
    }
    Ok(id)
}

impl From<NewFeatureId> for FeatureId {
    fn from(id: NewFeatureId) -> Self {
        Self(id.0)
    }
}

/// The version of a feature.
pub type FeatureVersion = Line<1, 100>;

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

text_enum! {
    /// Where a feature stands.
    pub enum FeatureStatus {
        /// Asked for; its job makes it.
        Pending = "pending",
        /// There.
        Active = "active",
        /// To be removed; its job does it.
        Deactivating = "deactivating",
        /// Gone; may be activated again.
        Inactive = "inactive",
        /// Its job has stopped.
        Failed = "failed",
    }
}

impl FeatureStatus {
    /// Tells whether the feature is there or a job works on it: as long, its entity is not deleted.
    #[must_use]
    pub const fn is_in_use(self) -> bool {
        matches!(self, Self::Pending | Self::Active | Self::Deactivating)
    }
}

state_machine! {
    /// What happens to a feature. It is created `pending`. An operator may let a failed job go on (`activate`,
    /// `deactivate`) or declare it done (`activated`, `deactivated`).
    pub enum FeatureEvent moves FeatureStatus {
        /// It is asked for.
        Activate = "activate": [Inactive, Failed] => Pending, "feature.activation_queued";
        /// It is there.
        Activated = "activated": [Pending, Failed] => Active, "feature.activated";
        /// It is to be removed.
        Deactivate = "deactivate": [Pending, Active, Failed] => Deactivating, "feature.deactivation_queued";
        /// It is removed.
        Deactivated = "deactivated": [Deactivating, Failed] => Inactive, "feature.deactivated";
        /// Its job has stopped.
        Fail = "fail": [Pending, Deactivating] => Failed, "feature.failed";
        /// The place it runs in goes, and it with it.
        End = "end": [Pending, Active, Deactivating, Failed] => Inactive, "feature.ended";
    }
}

/// The active features of an entity in an environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureManifest {
    /// The platform.
    pub platform_id: PlatformId,
    /// The entity.
    pub entity_id: EntityId,
    /// The environment.
    pub environment: Environment,
    /// When the manifest was asked for.
    pub generated_at: Timestamp,
    /// The features, sorted by id.
    pub features: Vec<ManifestFeature>,
}

/// A feature in a manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestFeature {
    /// The feature.
    pub id: FeatureId,
    /// Its version.
    pub version: FeatureVersion,
    /// The name of its package.
    pub package: FeatureId,
    /// Where it is served; `None` when an operator declared it active and nothing is known.
    pub service_url: Option<String>,
    /// Always `active`.
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
    /// What tells manifests of an address apart, whenever they were asked for: SHA-256 of the features, in hex.
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
        fn any_sequence_of_events_makes_only_the_moves_of_the_table(
            events in prop::collection::vec(prop::sample::select(FeatureEvent::ALL), 1..30),
        ) {
            assert_only_table_moves(FeatureStatus::Pending, &events);
        }
    }
}
