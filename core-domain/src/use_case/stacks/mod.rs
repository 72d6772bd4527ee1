//! The stack registry's use cases. Templates are read by any signed-in caller and written by operators.

mod publish;
mod templates;
mod versions;

pub use publish::{NewVersion, publish};
pub use templates::{
    NewTemplate, TemplateChange, create_template, find_template, list_templates, update_template,
};
pub use versions::{deprecate, find_version, latest, list_versions};

/// The most records a list of the stack registry shows; its total counts all.
pub const MAX_LISTED: u32 = 1_000;
