//! The configuration of a platform (interface: "Platform config").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::{count, json_text};
use crate::kernel::{
    BoundedJson, ConfigId, JsonText, PlatformId, Timestamp, UnixSeconds, record, text_enum,
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
