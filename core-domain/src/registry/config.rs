//! The configuration of a platform (interface: "Platform config").

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

/// The largest free-form value of a request, in bytes of JSON.
pub const MAX_FREE_FORM_BYTES: usize = 64 * 1024;

text_enum! {
    /// What a platform can be configured in.
    pub enum ConfigKey {
        /// Its features.
        Features = "features",
        /// How people sign in.
        Auth = "auth",
        /// The environment its programs run in.
        Env = "env",
    }
}

/// What a platform is configured to under one key, as it stands. [`ConfigVersion`](super::ConfigVersion) has what it was.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct PlatformConfig {
    /// The record's id; whoever configures names platform and key.
    #[serde(skip)]
    pub id: ConfigId,
    /// The platform.
    pub platform_id: PlatformId,
    /// The key; a platform has one record of each.
    pub config_key: ConfigKey,
    /// Free-form; kept as it came.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json_text()"))]
    pub config_value: JsonText,
    /// 1 for the first value, one more for every other one. The entity tag as well.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub version: i64,
    /// When this version was set.
    #[serde(serialize_with = "UnixSeconds::show")]
    #[schemars(with = "UnixSeconds")]
    pub updated_at: Timestamp,
}

// Values are free-form, and may hold what no audit should keep; the history has them.
record! {
    PlatformConfig as "configuration" by id, asked PlatformConfigQuery;
    of platform_id;
    audited, touched updated_at, without "configValue";
}

impl PlatformConfig {
    /// The first value of a key.
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

    /// The next version with this value; the same version when it is the value there is. What was read from a request has
    /// its fields in order, whatever order they came in.
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

/// Questions about the configuration of a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlatformConfigQuery {
    /// Every key that was set, by name.
    All,
    /// One key.
    Of(ConfigKey),
}

/// Sets a key of a platform's configuration.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetConfig {
    /// Any JSON of at most 64 KiB; `null` when nothing is said.
    #[serde(default)]
    pub config_value: BoundedJson<MAX_FREE_FORM_BYTES>,
}

/// Sets a key to the value it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct RollBackConfig {
    /// The version that had the value.
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
