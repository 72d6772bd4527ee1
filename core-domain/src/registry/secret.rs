//! The secrets of resources, without their values (interface: "Resource secret record").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{
    PlatformId, ResourceId, ResourceSecretId, TextError, Timestamp, record, text, text_enum,
};

text_enum! {
    /// The status of a secret. Any status may follow any other, because the program that sets secrets reports its own
    /// observations.
    pub enum SecretStatus {
        /// The secret is required but has no value.
        Missing = "missing",
        /// The secret has its first value.
        Set = "set",
        /// The secret has a value that replaced an earlier one.
        Rotated = "rotated",
        /// Setting the secret failed.
        Error = "error",
    }
}

text! {
    /// The name of a secret: upper-case letters, digits and underscores, starting with a letter
    /// (`^[A-Z][A-Z0-9_]{0,127}$`).
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
    /// The id of the record.
    pub id: ResourceSecretId,
    /// The platform that the resource belongs to.
    #[serde(skip)]
    pub platform_id: PlatformId,
    /// The resource that uses the secret.
    pub resource_id: ResourceId,
    /// The name of the secret. It is unique per resource.
    pub secret_name: SecretName,
    /// The status of the secret.
    pub status: SecretStatus,
    /// When the secret last received a value. `null` if it never had one.
    pub last_set_at: Option<Timestamp>,
    /// When the secret was first reported.
    pub created_at: Timestamp,
    /// When the record was last changed.
    pub updated_at: Timestamp,
}

record! {
    ResourceSecret as "resource secret" by id, asked ResourceSecretQuery;
    of platform_id;
    audited, touched updated_at;
}

/// Queries for secrets of resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceSecretQuery {
    /// The secrets of a resource, newest first.
    OfResource(ResourceId),
    /// The secret of a resource with this name.
    Named(ResourceId, SecretName),
}

/// Request body that reports the status of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SetResourceSecret {
    /// The new status. `set` is stored as `rotated` if the secret already has a value.
    pub status: SecretStatus,
}

impl ResourceSecret {
    /// Creates the record of a secret with the status `missing`.
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

    /// Returns the secret with a new status. `set` becomes `rotated` if the secret already has a value; both update
    /// `last_set_at`.
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
