//! Secrets of a platform. Their values can be set and never read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::open_enum::open_enum;
use crate::secret::PlainSecret;

open_enum! {
    /// The status of a secret.
    pub enum SecretStatus {
        /// A feature or stack needs the secret, and it has no value yet.
        Missing = "missing",
        /// The secret has a value.
        Set = "set",
        /// The value was replaced.
        Rotated = "rotated",
        /// The provider did not accept the value.
        Error = "error",
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct SetSecrets {
    pub(crate) secrets: BTreeMap<String, PlainSecret>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) resource_id: Option<String>,
}

/// The outcome of a request to set secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SecretOutcome {
    /// The platform that the secrets belong to.
    pub platform_id: String,
    /// The outcome by name: `ok`.
    pub results: BTreeMap<String, String>,
}

/// A secret of a platform, without its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct SecretRecord {
    /// The name of the secret, such as `DATABASE_URL`.
    pub name: String,
    /// The status of the secret.
    pub status: SecretStatus,
    /// The time at which the value was last set; `None` if it never was.
    #[serde(default)]
    pub last_set_at: Option<String>,
}
