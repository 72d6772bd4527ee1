//! Features of a platform.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::open_enum::open_enum;

open_enum! {
    /// The status of a feature.
    pub enum FeatureStatus {
        /// A job creates the feature.
        Pending = "pending",
        /// The feature is in use.
        Active = "active",
        /// A job removes the feature.
        Deactivating = "deactivating",
        /// The feature is removed.
        Inactive = "inactive",
        /// The feature could not be created or removed.
        Failed = "failed",
    }
}

/// The feature to activate on a platform.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ActivateFeature {
    /// The id of the feature.
    pub feature_id: String,
    /// The version of the feature, for example `1.2.0`.
    pub version: String,
    /// The settings of the feature. Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config: Option<Map<String, Value>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DeactivateFeature {
    pub(crate) feature_id: String,
}

/// The outcome of a request to activate a feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FeatureActivation {
    /// The word `activated`, also while the job is in progress.
    pub status: String,
    /// The id of the feature.
    pub feature_id: String,
    /// The version that was requested.
    pub version: String,
}

/// The outcome of a request to deactivate a feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct FeatureDeactivation {
    /// The word `deactivated`, also while the job is in progress.
    pub status: String,
    /// The id of the feature.
    pub feature_id: String,
}

/// A feature of a platform.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Feature {
    /// The id of the feature.
    pub feature_id: String,
    /// The version that was requested last.
    pub version: String,
    /// The status of the feature.
    pub status: FeatureStatus,
    /// The settings of the feature; `null` if there are none.
    #[serde(default)]
    pub config: Value,
    /// The time at which the feature last became active; `None` before.
    #[serde(default)]
    pub activated_at: Option<Value>,
}
