//! What an entity runs with (interface: "Feature manifest").

use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{FeatureActivation, FeatureId, FeatureStatus, FeatureVersion};
use crate::kernel::{EntityId, Environment, JsonText, PlatformId, Timestamp, hex};

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
