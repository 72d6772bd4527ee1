//! The stack registry's shapes (interface: "Stack template and version").

use core_domain::kernel::{TemplateId, UnixSeconds, VersionId};
use core_domain::port::Stored;
use core_domain::stacks::{SemVer, StackTemplate, StackVersion, TemplateStatus, VersionStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::kernel::Patch;

/// Body of `POST /api/v1/stacks`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CreateTemplate {
    /// Its name in paths; never changes.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[a-z0-9-]+$"))]
    pub(super) name: String,
    /// What people call it.
    #[schemars(length(min = 1, max = 128))]
    pub(super) display_name: String,
    /// What it is for.
    #[schemars(length(min = 1, max = 1024))]
    pub(super) description: String,
    /// A picture for it.
    #[schemars(length(max = 2048))]
    pub(super) icon: Option<String>,
    /// The field it belongs to.
    #[schemars(length(max = 255))]
    pub(super) domain: Option<String>,
}

/// Body of `PATCH /api/v1/stacks/{name}`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UpdateTemplate {
    /// What people call it.
    #[schemars(length(min = 1, max = 128))]
    pub(super) display_name: Option<String>,
    /// What it is for.
    #[schemars(length(min = 1, max = 1024))]
    pub(super) description: Option<String>,
    /// A picture for it; `null` takes it away.
    #[serde(default)]
    #[schemars(length(max = 2048))]
    pub(super) icon: Patch<String>,
    /// Whether it is offered.
    pub(super) status: Option<TemplateStatus>,
}

/// Body of `POST /api/v1/stacks/{name}/versions`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PublishVersion {
    /// Its number.
    pub(super) version: SemVer,
    /// What it is made of: any object of at most 256 KiB.
    pub(super) stack_definition: Map<String, Value>,
    /// The SDK it is made for.
    pub(super) core_sdk_version: SemVer,
}

/// The id of what was made.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Made {
    pub(super) id: String,
}

/// It is done.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Done {
    /// Always true.
    pub(super) ok: bool,
}

/// A template as lists show it.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct TemplateItem {
    id: TemplateId,
    name: String,
    display_name: String,
    description: String,
    icon: Option<String>,
    domain: Option<String>,
    latest_version: Option<String>,
    status: TemplateStatus,
    created_at: UnixSeconds,
    updated_at: UnixSeconds,
}

impl From<Stored<StackTemplate>> for TemplateItem {
    fn from(stored: Stored<StackTemplate>) -> Self {
        let template = stored.into_inner();
        Self {
            id: template.id,
            name: template.name,
            display_name: template.display_name,
            description: template.description,
            icon: template.icon,
            domain: template.domain,
            latest_version: template.latest_version,
            status: template.status,
            created_at: UnixSeconds(template.created_at),
            updated_at: UnixSeconds(template.updated_at),
        }
    }
}

/// A template with its latest version, if it has any.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TemplateDetail {
    pub(super) template: TemplateItem,
    pub(super) latest_version: Option<VersionItem>,
}

/// A version of a template.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct VersionItem {
    id: VersionId,
    template_id: TemplateId,
    version: SemVer,
    /// The definition as JSON text.
    stack_definition: String,
    core_sdk_version: SemVer,
    status: VersionStatus,
    published_at: UnixSeconds,
    created_at: UnixSeconds,
}

impl From<Stored<StackVersion>> for VersionItem {
    fn from(stored: Stored<StackVersion>) -> Self {
        let version = stored.into_inner();
        Self {
            id: version.id,
            template_id: version.template_id,
            version: version.version,
            stack_definition: version.stack_definition.to_string(),
            core_sdk_version: version.core_sdk_version,
            status: version.status,
            published_at: UnixSeconds(version.published_at),
            created_at: UnixSeconds(version.created_at),
        }
    }
}
