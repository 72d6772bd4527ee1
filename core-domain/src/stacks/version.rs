//! Versions of stack templates: immutable once published, but for their deprecation.

use serde_json::Value;

use super::SemVer;
use crate::kernel::{TemplateId, Timestamp, VersionId, text_enum};
use crate::port::Record;

text_enum! {
    /// Whether a version is offered.
    pub enum VersionStatus {
        /// Offered.
        Active = "active",
        /// Still readable and usable, flagged.
        Deprecated = "deprecated",
    }
}

/// A published version of a template (interface: "Stack template and version").
#[derive(Clone, Debug, PartialEq)]
pub struct StackVersion {
    /// The version's id.
    pub id: VersionId,
    /// The template it belongs to.
    pub template_id: TemplateId,
    /// Its number. Unique in the template by precedence.
    pub version: SemVer,
    /// What it is made of; any object, kept as it was given.
    pub stack_definition: Value,
    /// SHA-256 of the definition's canonical JSON, in hex.
    pub digest: String,
    /// The SDK it is made for.
    pub core_sdk_version: SemVer,
    /// Whether it is offered.
    pub status: VersionStatus,
    /// When it was published.
    pub published_at: Timestamp,
    /// When the record was made.
    pub created_at: Timestamp,
}

impl Record for StackVersion {
    type Query = StackVersionQuery;
    const KIND: &'static str = "stack version";

    fn key(&self) -> &str {
        self.id.as_str()
    }
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
