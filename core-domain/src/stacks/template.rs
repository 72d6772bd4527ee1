//! Stack templates.

use crate::kernel::{TemplateId, Timestamp, text_enum};
use crate::port::Record;

text_enum! {
    /// Whether a template is offered.
    pub enum TemplateStatus {
        /// Offered.
        Active = "active",
        /// Still readable and usable, no new versions.
        Deprecated = "deprecated",
    }
}

/// A stack template (interface: "Stack template and version").
#[derive(Clone, Debug, PartialEq)]
pub struct StackTemplate {
    /// The template's id.
    pub id: TemplateId,
    /// Its name in paths: `^[a-z0-9-]+$`, 1 to 64 characters. Never changes.
    pub name: String,
    /// What people call it: 1 to 128 characters.
    pub display_name: String,
    /// What it is for: 1 to 1,024 characters.
    pub description: String,
    /// A picture for it.
    pub icon: Option<String>,
    /// The field it belongs to.
    pub domain: Option<String>,
    /// The version to use when none is named.
    pub latest_version: Option<String>,
    /// Whether it is offered.
    pub status: TemplateStatus,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

impl Record for StackTemplate {
    type Query = StackTemplateQuery;
    const KIND: &'static str = "stack template";

    fn key(&self) -> &str {
        self.id.as_str()
    }
}

/// Questions about templates.
#[derive(Clone, Debug, PartialEq)]
pub enum StackTemplateQuery {
    /// All, newest first.
    All,
    /// The one with this name.
    Named(String),
}
