//! The history of a platform's configuration: every version there was, never changed.

use json_patch::{Patch, PatchOperation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ConfigKey, PlatformConfig};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::{count, json_text};
use crate::kernel::{
    Caller, ConfigVersionId, JsonText, PlatformId, TextError, Timestamp, UnixSeconds, record, text,
};

fn version_number(text: &str) -> Result<String, TextError> {
    let is_number = !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    if is_number && (1..=18).contains(&text.len()) {
        return Ok(text.to_owned());
    }
    Err(TextError::Malformed)
}

text! {
    /// The number of a version as a path has it: at most 18 digits.
    ConfigVersionNumber, version_number,
    { "type": "string", "minLength": 1, "maxLength": 18, "pattern": "^[1-9][0-9]*$", "examples": ["1"] }
}

impl ConfigVersionNumber {
    /// The number.
    #[must_use]
    pub fn number(&self) -> i64 {
        // 18 digits always fit.
        self.0.parse().unwrap_or(i64::MAX)
    }
}

/// A value that a key of a platform's configuration has or had.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct ConfigVersion {
    /// The record's id; whoever asks names platform, key and version.
    #[serde(skip)]
    pub id: ConfigVersionId,
    /// The platform.
    pub platform_id: PlatformId,
    /// The key.
    pub config_key: ConfigKey,
    /// Its number, without gaps from 1.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub version: i64,
    /// The value, as it came.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json_text()"))]
    pub config_value: JsonText,
    /// Who set it: a user's or a key's id, or the name of a service.
    pub actor_id: String,
    /// What kind of caller that is, as in the audit.
    pub actor_type: String,
    /// When it was set.
    #[serde(serialize_with = "UnixSeconds::show")]
    #[schemars(with = "UnixSeconds")]
    pub created_at: Timestamp,
}

record! {
    ConfigVersion as "version of this configuration" by id, asked ConfigVersionQuery;
    of platform_id;
}

impl ConfigVersion {
    /// The version that a configuration is at, set by this caller.
    #[must_use]
    pub fn of(id: ConfigVersionId, config: &PlatformConfig, caller: &Caller) -> Self {
        Self {
            id,
            platform_id: config.platform_id.clone(),
            config_key: config.config_key,
            version: config.version,
            config_value: config.config_value.clone(),
            actor_id: caller.actor_id().to_owned(),
            actor_type: caller.kind().to_owned(),
            created_at: config.updated_at,
        }
    }
}

/// Questions about the versions of a key; highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigVersionQuery {
    /// All.
    Of(ConfigKey),
    /// The one with this number.
    Numbered(ConfigKey, i64),
}

/// Which versions to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct DiffVersions {
    /// The version to begin with.
    #[schemars(range(min = 1))]
    pub from: i64,
    /// The version to arrive at; may be the earlier one.
    #[schemars(range(min = 1))]
    pub to: i64,
}

/// What makes one version of a key another one.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigDiff {
    /// The platform.
    pub platform_id: PlatformId,
    /// The key.
    pub config_key: ConfigKey,
    /// The version to begin with.
    pub from: i64,
    /// The version to arrive at.
    pub to: i64,
    /// The operations of RFC 6902 that lead from the one value to the other. Numbers that 64 bits do not hold are compared as
    /// the nearest doubles.
    #[schemars(
        with = "Vec<PatchOperation>",
        extend("examples" = [[{ "op": "replace", "path": "/theme", "value": "dark" }]])
    )]
    pub changes: Patch,
}

impl ConfigDiff {
    /// What leads from one version of a key to another.
    #[must_use]
    pub fn between(from: &ConfigVersion, to: &ConfigVersion) -> Self {
        Self {
            platform_id: from.platform_id.clone(),
            config_key: from.config_key,
            from: from.version,
            to: to.version,
            changes: json_patch::diff(&from.config_value.value(), &to.config_value.value()),
        }
    }
}
