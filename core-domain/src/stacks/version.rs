//! Versions of stack templates: immutable once published, but for their deprecation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use super::{SemVer, StackDefinition};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::json_text;
use crate::kernel::{
    Audited, BoundedJson, JsonText, PlatformId, Record, TemplateId, Timestamp, UnixSeconds,
    Unowned, VersionId, snapshot, state_machine, text_enum,
};

/// The largest definition of a stack, in bytes of JSON.
pub const MAX_DEFINITION_BYTES: usize = 256 * 1024;

text_enum! {
    /// Whether a version is offered.
    pub enum VersionStatus {
        /// Offered.
        Active = "active",
        /// Still readable and usable, flagged.
        Deprecated = "deprecated",
    }
}

state_machine! {
    /// What happens to a version. It is published `active`.
    pub enum VersionEvent moves VersionStatus {
        /// It is no longer offered.
        Deprecate = "deprecate": [Active] => Deprecated, "stack_version.deprecated";
    }
}

/// A published version of a template (interface: "Stack template and version").
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct StackVersion {
    /// The version's id.
    pub id: VersionId,
    /// The template it belongs to.
    pub template_id: TemplateId,
    /// Its number. Unique in the template by precedence.
    pub version: SemVer,
    /// What it is made of; any object, kept as it was given and shown as JSON text.
    #[serde(serialize_with = "as_text")]
    #[schemars(with = "String")]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json_text()"))]
    pub stack_definition: JsonText,
    /// SHA-256 of the definition as it is kept, in hex.
    #[serde(skip)]
    pub digest: String,
    /// The SDK it is made for.
    pub core_sdk_version: SemVer,
    /// Whether it is offered.
    pub status: VersionStatus,
    /// When it was published.
    #[serde(serialize_with = "UnixSeconds::show")]
    #[schemars(with = "UnixSeconds")]
    pub published_at: Timestamp,
    /// When the record was made.
    #[serde(serialize_with = "UnixSeconds::show")]
    #[schemars(with = "UnixSeconds")]
    pub created_at: Timestamp,
}

fn as_text<S: Serializer>(definition: &JsonText, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(definition.as_str())
}

// Not by `record!`: its entity tag is the digest of its definition, and the audit keeps the digest instead of the
// definition, which may have 256 KiB.
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

/// Questions about versions; always highest precedence first.
#[derive(Clone, Debug, PartialEq)]
pub enum StackVersionQuery {
    /// All of a template.
    OfTemplate(TemplateId),
    /// The one of this precedence.
    Exactly(TemplateId, SemVer),
    /// Those offered.
    Active(TemplateId),
    /// Those offered that are no pre-releases.
    ActiveReleases(TemplateId),
}

/// Publishes a version of a template.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PublishVersion {
    /// Its number.
    pub version: SemVer,
    /// What it is made of: any object of at most 256 KiB whose known keys follow their rules.
    #[schemars(with = "StackDefinition", extend("x-maxBytes" = MAX_DEFINITION_BYTES))]
    pub stack_definition: BoundedJson<MAX_DEFINITION_BYTES>,
    /// The SDK it is made for.
    pub core_sdk_version: SemVer,
}
