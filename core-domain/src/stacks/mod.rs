//! The stack registry: templates and their immutable versions.

mod sem_ver;
mod template;
mod version;

pub use sem_ver::SemVer;
pub use template::{
    CreateTemplate, StackTemplate, StackTemplateQuery, TemplateEvent, TemplateName, TemplateStatus,
    UpdateTemplate,
};
pub use version::{PublishVersion, StackVersion, StackVersionQuery, VersionEvent, VersionStatus};
