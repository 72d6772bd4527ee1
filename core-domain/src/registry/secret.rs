//! Which secrets resources have (interface: "Resource secret record"). Their values are never here.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{
    PlatformId, ResourceId, ResourceSecretId, TextError, Timestamp, record, text, text_enum,
};

text_enum! {
    /// Where a secret stands. Any may follow any: whoever sets secrets says what they saw.
    pub enum SecretStatus {
        /// Needed, and not there.
        Missing = "missing",
        /// There.
        Set = "set",
        /// There, with another value than at first.
        Rotated = "rotated",
        /// Could not be set.
        Error = "error",
    }
}

text! {
    /// The name of a secret: `^[A-Z][A-Z0-9_]{0,127}$`.
    SecretName,
    secret_name,
    { "type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[A-Z][A-Z0-9_]{0,127}$", "examples": ["API_KEY"] }
}

fn secret_name(text: &str) -> Result<String, TextError> {
    let fits = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
    match text.len() {
        0 => Err(TextError::TooShort),
        129.. => Err(TextError::TooLong),
        _ if text.starts_with(|c: char| c.is_ascii_uppercase()) && text.bytes().all(fits) => {
            Ok(text.to_owned())
        }
        _ => Err(TextError::Malformed),
    }
}

/// A secret of a resource, without its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct ResourceSecret {
    /// The record's id.
    pub id: ResourceSecretId,
    /// The platform.
    #[serde(skip)]
    pub platform_id: PlatformId,
    /// The resource.
    pub resource_id: ResourceId,
    /// Its name; no two of a resource share one.
    pub secret_name: SecretName,
    /// Where it stands.
    pub status: SecretStatus,
    /// When it last got a value.
    pub last_set_at: Option<Timestamp>,
    /// When it was first noted.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

record! {
    ResourceSecret as "resource secret" by id, asked ResourceSecretQuery;
    of platform_id;
    audited, touched updated_at;
}

/// Questions about secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceSecretQuery {
    /// Those of a resource, newest first.
    OfResource(ResourceId),
    /// The one of this name.
    Named(ResourceId, SecretName),
}

/// Notes where a secret stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetResourceSecret {
    /// Where it stands.
    pub status: SecretStatus,
}

impl ResourceSecret {
    /// A secret that was not noted before.
    #[must_use]
    pub fn create(
        id: ResourceSecretId,
        platform_id: PlatformId,
        resource_id: ResourceId,
        secret_name: SecretName,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            platform_id,
            resource_id,
            secret_name,
            status: SecretStatus::Missing,
            last_set_at: None,
            created_at: now,
            updated_at: now,
        }
    }

    /// The secret with a status. One that has a value and is set again has been rotated.
    #[must_use]
    pub fn with_status(mut self, status: SecretStatus, now: Timestamp) -> Self {
        use SecretStatus::{Rotated, Set};
        let has_value = matches!(self.status, Set | Rotated);
        self.status = if status == Set && has_value {
            Rotated
        } else {
            status
        };
        if matches!(self.status, Set | Rotated) {
            self.last_set_at = Some(now);
        }
        self
    }
}
