//! Versions of stack templates. A published version never changes, except that it can be deprecated.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::{SemVer, StackDefinition};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::json_text;
use crate::kernel::{
    Audited, BoundedJson, JsonText, PlatformId, Record, TemplateId, Timestamp, UnixSeconds,
    Unowned, VersionId, snapshot, state_machine, text_enum,
};

/// Maximum size of a stack definition, in bytes of JSON.
pub const MAX_DEFINITION_BYTES: usize = 256 * 1024;

text_enum! {
    /// The status of a version.
    pub enum VersionStatus {
        /// The version is offered.
        Active = "active",
        /// The version can still be read and used, but is marked as deprecated.
        Deprecated = "deprecated",
    }
}

state_machine! {
    /// Events of a version, which is published as `active`.
    pub enum VersionEvent moves VersionStatus {
        /// The version is no longer offered.
        Deprecate = "deprecate": [Active] => Deprecated, "stack_version.deprecated";
    }
}

/// A published version of a stack template.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct StackVersion {
    /// The id of the version.
    pub id: VersionId,
    /// The template that the version belongs to.
    pub template_id: TemplateId,
    /// The number of the version. It is unique in the template by SemVer precedence.
    pub version: SemVer,
    /// The definition of the stack, as JSON text.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String")]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json_text()"))]
    pub stack_definition: JsonText,
    /// SHA-256 digest of the stored definition, in hexadecimal. It is the entity tag.
    #[serde(skip)]
    pub digest: String,
    /// The version of the SDK that the stack targets.
    pub core_sdk_version: SemVer,
    /// The status of the version.
    pub status: VersionStatus,
    /// When the version was published, in Unix seconds.
    #[serde(serialize_with = "UnixSeconds::serialize_seconds")]
    #[schemars(with = "UnixSeconds")]
    pub published_at: Timestamp,
    /// When the record was created, in Unix seconds.
    #[serde(serialize_with = "UnixSeconds::serialize_seconds")]
    #[schemars(with = "UnixSeconds")]
    pub created_at: Timestamp,
}

fn as_text<S: Serializer>(definition: &JsonText, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(definition.as_str())
}

// Not declared with `record!`: the entity tag is the digest of the definition, and the audit log has the digest instead
// of the definition, which may have 256 KiB.
impl Record for StackVersion {
    type Query = StackVersionQuery;
    type Owner = Unowned;
    const KIND: &'static str = "stack version";

    fn key(&self) -> &str {
        self.id.as_str()
    }

    fn etag(&self, _version: i64) -> String {
        self.digest.clone()
    }
}

impl Audited for StackVersion {
    fn audit_snapshot(&self) -> JsonText {
        let mut snapshot = snapshot(self, &["stack_definition"]);
        snapshot["digest"] = self.digest.clone().into();
        JsonText::of(&snapshot)
    }

    fn audit_platform(&self) -> Option<&PlatformId> {
        None
    }

    fn touch(&mut self, _now: Timestamp) {}
}

/// Queries for versions, highest precedence first.
#[derive(Clone, Debug, PartialEq)]
pub enum StackVersionQuery {
    /// All versions of a template.
    OfTemplate(TemplateId),
    /// The version of a template with the precedence of this number.
    Exactly(TemplateId, SemVer),
    /// The active versions of a template.
    Active(TemplateId),
    /// The active versions of a template that are not pre-releases.
    ActiveReleases(TemplateId),
}

/// Request body that publishes a version of a template.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublishVersion {
    /// The number of the version.
    pub version: SemVer,
    /// The definition of the stack: an object of at most 256 KiB whose known keys follow their rules.
    #[schemars(with = "StackDefinition", extend("x-maxBytes" = MAX_DEFINITION_BYTES))]
    pub stack_definition: BoundedJson<MAX_DEFINITION_BYTES>,
    /// The version of the SDK that the stack targets.
    pub core_sdk_version: SemVer,
}
