//! The stack registry: stack templates, their immutable versions, and the parts that a version's definition describes.

mod definition;
mod part;
mod sem_ver;
mod template;
mod version;

pub use definition::{
    AppDefinition, BindingDefinition, FeatureDefinition, ResourceDefinition, StackDefinition,
};
pub use part::{AppName, AppType, PartBinding, PartId, PartName, Script, StackPart, parts_of_app};
pub use sem_ver::SemVer;
pub use template::{
    CreateTemplate, StackTemplate, StackTemplateQuery, TemplateEvent, TemplateName, TemplateStatus,
    UpdateTemplate,
};
pub use version::{
    MAX_DEFINITION_BYTES, PublishVersion, StackVersion, StackVersionQuery, VersionEvent,
    VersionStatus,
};
