//! The stack registry: templates and their immutable versions.

mod sem_ver;
mod template;
mod version;

pub use sem_ver::SemVer;
pub use template::{StackTemplate, StackTemplateQuery, TemplateStatus};
pub use version::{StackVersion, StackVersionQuery, VersionStatus};
