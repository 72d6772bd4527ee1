//! Stack templates (interface: "Stack template and version").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{
    Line, TemplateId, TextError, Timestamp, UnixSeconds, record, state_machine, text, text_enum,
    update_command,
};

text_enum! {
    /// The status of a stack template.
    pub enum TemplateStatus {
        /// The template is offered.
        Active = "active",
        /// The template can still be read and used, but accepts no new versions.
        Deprecated = "deprecated",
    }
}

state_machine! {
    /// Events of a stack template, which is created `active`.
    pub enum TemplateEvent moves TemplateStatus {
        /// The template is no longer offered.
        Deprecate = "deprecate": [Active] => Deprecated, "stack_template.updated";
        /// The template is offered again.
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

/// A template from which stacks are activated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct StackTemplate {
    /// The id of the template.
    pub id: TemplateId,
    /// The name of the template in paths. It never changes.
    pub name: TemplateName,
    /// The name of the template that is shown to people.
    pub display_name: Line<1, 128>,
    /// The description of the template's purpose.
    pub description: Line<1, 1024>,
    /// The icon of the template, as text of at most 2048 characters. `null` if there is none.
    pub icon: Option<Line<0, 2048>>,
    /// The subject area of the template. `null` if there is none.
    pub domain: Option<Line<0, 255>>,
    /// The version to use if none is named: the highest active release, if there is one. `null` if the template has no
    /// versions.
    pub latest_version: Option<String>,
    /// The status of the template.
    pub status: TemplateStatus,
    /// When the template was created, in Unix seconds.
    #[serde(serialize_with = "UnixSeconds::serialize_seconds")]
    #[schemars(with = "UnixSeconds")]
    pub created_at: Timestamp,
    /// When the template was last changed, in Unix seconds.
    #[serde(serialize_with = "UnixSeconds::serialize_seconds")]
    #[schemars(with = "UnixSeconds")]
    pub updated_at: Timestamp,
}

record! {
    StackTemplate as "stack template" by id, asked StackTemplateQuery;
    audited, touched updated_at;
}

/// Queries for stack templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StackTemplateQuery {
    /// All templates, newest first.
    All,
    /// The template with this name.
    Named(TemplateName),
}

/// Request body that creates a template without versions.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateTemplate {
    /// The name of the template in paths. It never changes.
    pub name: TemplateName,
    /// The name of the template that is shown to people.
    pub display_name: Line<1, 128>,
    /// The description of the template's purpose.
    pub description: Line<1, 1024>,
    /// The icon of the template, as text of at most 2048 characters. Default: none.
    pub icon: Option<Line<0, 2048>>,
    /// The subject area of the template. Default: none.
    pub domain: Option<Line<0, 255>>,
}

impl StackTemplate {
    /// Creates an active template without versions.
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
    /// Request body that updates a template. Omitted fields stay unchanged.
    pub struct UpdateTemplate for StackTemplate {
        set {
            /// The name of the template that is shown to people.
            display_name: Line<1, 128>,
            /// The description of the template's purpose.
            description: Line<1, 1024>,
        }
        also {
            /// The new status of the template.
            status: Option<TemplateStatus>,
        }
        optional {
            /// The icon of the template, as text of at most 2048 characters. `null` clears it.
            icon: Line<0, 2048>,
        }
    }
}
