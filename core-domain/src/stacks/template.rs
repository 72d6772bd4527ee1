//! Stack templates.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{
    Line, TemplateId, TextError, Timestamp, UnixSeconds, record, state_machine, text, text_enum,
    update_command,
};

text_enum! {
    /// Whether a template is offered.
    pub enum TemplateStatus {
        /// Offered.
        Active = "active",
        /// Still readable and usable, no new versions.
        Deprecated = "deprecated",
    }
}

state_machine! {
    /// What happens to a template. It is created `active`.
    pub enum TemplateEvent moves TemplateStatus {
        /// It is no longer offered.
        Deprecate = "deprecate": [Active] => Deprecated, "stack_template.updated";
        /// It is offered again.
        Offer = "offer": [Deprecated] => Active, "stack_template.updated";
    }
}

text! {
    /// The name of a template in paths: `^[a-z0-9-]+$`, 1 to 64 characters.
    TemplateName,
    template_name,
    { "type": "string", "minLength": 1, "maxLength": 64, "pattern": "^[a-z0-9-]+$", "examples": ["web-shop"] }
}

fn template_name(text: &str) -> Result<String, TextError> {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    match text.len() {
        0 => Err(TextError::TooShort),
        65.. => Err(TextError::TooLong),
        _ if text.bytes().all(fits) => Ok(text.to_owned()),
        _ => Err(TextError::Malformed),
    }
}

/// A stack template (interface: "Stack template and version").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct StackTemplate {
    /// The template's id.
    pub id: TemplateId,
    /// Its name in paths. Never changes.
    pub name: TemplateName,
    /// What people call it.
    pub display_name: Line<1, 128>,
    /// What it is for.
    pub description: Line<1, 1024>,
    /// A picture for it.
    pub icon: Option<Line<0, 2048>>,
    /// The field it belongs to.
    pub domain: Option<Line<0, 255>>,
    /// The version to use when none is named.
    pub latest_version: Option<String>,
    /// Whether it is offered.
    pub status: TemplateStatus,
    /// When it was created.
    #[serde(serialize_with = "UnixSeconds::show")]
    #[schemars(with = "UnixSeconds")]
    pub created_at: Timestamp,
    /// When it was last changed.
    #[serde(serialize_with = "UnixSeconds::show")]
    #[schemars(with = "UnixSeconds")]
    pub updated_at: Timestamp,
}

record! {
    StackTemplate as "stack template" by id, asked StackTemplateQuery;
    audited, touched updated_at;
}

/// Questions about templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StackTemplateQuery {
    /// All, newest first.
    All,
    /// The one with this name.
    Named(TemplateName),
}

/// Creates a template without versions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateTemplate {
    /// Its name in paths; never changes.
    pub name: TemplateName,
    /// What people call it.
    pub display_name: Line<1, 128>,
    /// What it is for.
    pub description: Line<1, 1024>,
    /// A picture for it.
    pub icon: Option<Line<0, 2048>>,
    /// The field it belongs to.
    pub domain: Option<Line<0, 255>>,
}

impl StackTemplate {
    /// A new template.
    #[must_use]
    pub fn create(id: TemplateId, command: CreateTemplate, now: Timestamp) -> Self {
        Self {
            id,
            name: command.name,
            display_name: command.display_name,
            description: command.description,
            icon: command.icon,
            domain: command.domain,
            latest_version: None,
            status: TemplateStatus::Active,
            created_at: now,
            updated_at: now,
        }
    }
}

update_command! {
    /// Changes a template.
    pub struct UpdateTemplate for StackTemplate {
        set {
            /// What people call it.
            display_name: Line<1, 128>,
            /// What it is for.
            description: Line<1, 1024>,
        }
        also {
            /// Whether it is offered.
            status: Option<TemplateStatus>,
        }
        optional {
            /// A picture for it; `null` takes it away.
            icon: Line<0, 2048>,
        }
    }
}
