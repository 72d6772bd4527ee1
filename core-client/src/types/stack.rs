//! Stack templates, their activation, and workspace stacks.

use serde::{Deserialize, Serialize};

use super::environment::Environment;
use super::open_enum::open_enum;

/// The stack to activate on a platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ActivateStack {
    /// The platform on which the stack is activated.
    pub platform_id: String,
    /// The stack template, by name or id.
    pub stack_id: String,
    /// The version of the template, for example `1.2.0`.
    pub stack_version: String,
    /// The environment in which the stack runs. Default: `prod`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment: Option<Environment>,
    /// The entity that gets the stack. Default: the default tenant of the platform.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity_id: Option<String>,
}

open_enum! {
    /// The status of a workspace stack.
    pub enum WorkspaceStackStatus {
        /// The stack is being created.
        Pending = "pending",
        /// The stack is in use.
        Active = "active",
        /// The stack is being removed.
        Deactivating = "deactivating",
        /// The stack is removed.
        Inactive = "inactive",
        /// The stack could not be created.
        Failed = "failed",
    }
}

/// A stack of an entity, to which hostnames belong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct WorkspaceStack {
    /// The id of the workspace stack.
    pub id: String,
    /// The display name of the stack.
    pub name: String,
    /// The entity that the stack belongs to.
    pub tenant_id: String,
    /// Whether the stack is the default stack of its entity.
    pub is_default: bool,
    /// The status of the stack.
    pub status: WorkspaceStackStatus,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CreateWorkspaceStack {
    pub(crate) tenant_id: String,
    pub(crate) name: String,
    pub(crate) is_default: bool,
}

/// A workspace stack that was created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct CreatedStack {
    /// The id of the stack.
    pub id: String,
    /// The name of the stack.
    pub name: String,
}

/// A template and its latest version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct StackTemplateDetail {
    /// The record of the template.
    pub template: StackTemplate,
}

/// A stack template: a published description of resources and features.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct StackTemplate {
    /// The id of the template.
    pub id: String,
    /// The name of the template in paths.
    pub name: String,
    /// The name of the template that is displayed to people.
    pub display_name: String,
    /// The description of the template's purpose.
    pub description: String,
    /// The version to use if none is named; `None` if the template has no versions.
    pub latest_version: Option<String>,
}
