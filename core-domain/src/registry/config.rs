//! The configuration of a platform and its history (interface: "Platform config").

use json_patch::{Patch, PatchOperation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::json_text;
use crate::kernel::{
    BoundedJson, Caller, ConfigId, ConfigVersionId, JsonText, PlatformId, TextError, Timestamp,
    UnixSeconds, record, text, text_enum,
};

/// Maximum size of a free-form value in a request, in bytes of JSON.
pub const MAX_FREE_FORM_BYTES: usize = 64 * 1024;

text_enum! {
    /// The keys of a platform's configuration.
    pub enum ConfigKey {
        /// The configuration of the features.
        Features = "features",
        /// The configuration of sign-in.
        Auth = "auth",
        /// The environment of the platform's programs.
        Env = "env",
    }
}

/// The current value of a configuration key of a platform. Every value is also kept as a version.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct PlatformConfig {
    /// The id of the record. Callers address the record by platform and key.
    #[serde(skip)]
    pub id: ConfigId,
    /// The platform that is configured.
    pub platform_id: PlatformId,
    /// The configuration key. A platform has one record per key.
    pub config_key: ConfigKey,
    /// The free-form value. The fields of its objects are sorted by name.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json_text()"))]
    pub config_value: JsonText,
    /// The number of the version: 1 for the first value, increased by 1 with every different value. It is also the
    /// entity tag.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub version: i64,
    /// When this version was set, in Unix seconds.
    #[serde(serialize_with = "UnixSeconds::serialize_seconds")]
    #[schemars(with = "UnixSeconds")]
    pub updated_at: Timestamp,
}

// The audit log omits the value: it is free-form and may contain sensitive data. The history of versions has it.
record! {
    PlatformConfig as "configuration" by id, asked PlatformConfigQuery;
    of platform_id;
    audited, touched updated_at, without "configValue";
}

impl PlatformConfig {
    /// Creates the first version of a key.
    #[must_use]
    pub fn create(
        id: ConfigId,
        platform_id: &PlatformId,
        config_key: ConfigKey,
        config_value: JsonText,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            platform_id: platform_id.clone(),
            config_key,
            config_value,
            version: 1,
            updated_at: now,
        }
    }

    /// Returns the next version with this value, or the same version if the value is equal. Values from requests have
    /// sorted fields, so the order of the fields in the request does not matter.
    #[must_use]
    pub fn with_value(self, config_value: JsonText) -> Self {
        if self.config_value == config_value {
            return self;
        }
        Self {
            config_value,
            version: self.version.saturating_add(1),
            ..self
        }
    }
}

/// Queries for the configuration of a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlatformConfigQuery {
    /// All keys that have a value, ordered by name.
    All,
    /// The record of one key.
    Of(ConfigKey),
}

/// Request body that sets the value of a configuration key.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetConfig {
    /// Any JSON value of at most 64 KiB. Default: `null`.
    #[serde(default)]
    pub config_value: BoundedJson<MAX_FREE_FORM_BYTES>,
}

/// Request body that restores an earlier value of a configuration key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct RollBackConfig {
    /// The number of the version whose value is restored.
    #[schemars(range(min = 1))]
    pub version: i64,
}

fn version_number(text: &str) -> Result<String, TextError> {
    let is_number = !text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    if is_number && (1..=18).contains(&text.len()) {
        return Ok(text.to_owned());
    }
    Err(TextError::Malformed)
}

text! {
    /// The number of a version in a path: 1 to 18 digits, without a leading zero.
    ConfigVersionNumber, version_number,
    { "type": "string", "minLength": 1, "maxLength": 18, "pattern": "^[1-9][0-9]*$", "examples": ["1"] }
}

impl ConfigVersionNumber {
    /// Returns the number as an integer.
    #[must_use]
    pub fn number(&self) -> i64 {
        // 18 digits always fit into 64 bits.
        self.0.parse().unwrap_or(i64::MAX)
    }
}

/// A current or earlier value of a configuration key.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct ConfigVersion {
    /// The id of the record. Callers address the record by platform, key and version.
    #[serde(skip)]
    pub id: ConfigVersionId,
    /// The platform that is configured.
    pub platform_id: PlatformId,
    /// The configuration key of the value.
    pub config_key: ConfigKey,
    /// The number of the version. Versions are numbered from 1 without gaps.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub version: i64,
    /// The free-form value. The fields of its objects are sorted by name.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json_text()"))]
    pub config_value: JsonText,
    /// The caller that set the value: the id of a user or API key, or the name of a service.
    pub actor_id: String,
    /// The kind of the caller, as in the audit log.
    pub actor_type: String,
    /// When the value was set, in Unix seconds.
    #[serde(serialize_with = "UnixSeconds::serialize_seconds")]
    #[schemars(with = "UnixSeconds")]
    pub created_at: Timestamp,
}

record! {
    ConfigVersion as "version of this configuration" by id, asked ConfigVersionQuery;
    of platform_id;
}

impl ConfigVersion {
    /// Creates the version record of a configuration's current value, set by this caller.
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

/// Queries for the versions of a key, highest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigVersionQuery {
    /// All versions of a key.
    Of(ConfigKey),
    /// The version with this number.
    Numbered(ConfigKey, i64),
}

/// Query parameters that select two versions to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct DiffVersions {
    /// The number of the version to start from.
    #[schemars(range(min = 1))]
    pub from: i64,
    /// The number of the version to arrive at. It may be lower than `from`.
    #[schemars(range(min = 1))]
    pub to: i64,
}

/// The difference between two versions of a configuration key.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigDiff {
    /// The platform that is configured.
    pub platform_id: PlatformId,
    /// The configuration key of both versions.
    pub config_key: ConfigKey,
    /// The number of the version to start from.
    pub from: i64,
    /// The number of the version to arrive at.
    pub to: i64,
    /// The JSON Patch operations (RFC 6902) that turn the value of `from` into the value of `to`. Numbers that do not
    /// fit into 64 bits are compared as the nearest doubles.
    #[schemars(
        with = "Vec<PatchOperation>",
        extend("examples" = [[{ "op": "replace", "path": "/theme", "value": "dark" }]])
    )]
    pub changes: Patch,
}

impl ConfigDiff {
    /// Returns the difference between two versions of a key.
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
