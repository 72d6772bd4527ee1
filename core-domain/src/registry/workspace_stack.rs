//! Workspace stacks (interface: "Workspace stack").

use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{EntityId, Line, Name, PlatformId, StackId, Timestamp, record, text_enum};

text_enum! {
    /// Where a workspace stack stands.
    pub enum WorkspaceStackStatus {
        /// There.
        Active = "active",
    }
}

/// A stack of a tenant: what its features and resources are grouped by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct WorkspaceStack {
    /// The stack's id.
    pub id: StackId,
    /// The entity it belongs to.
    pub tenant_id: EntityId,
    /// The platform it belongs to.
    pub platform_id: PlatformId,
    /// What people call it.
    pub name: Name,
    /// The stack template it was made from.
    pub template_id: Option<Line<1, 255>>,
    /// The repository it is built from.
    pub repo_name: Option<Line<1, 255>>,
    /// Where it stands.
    pub status: WorkspaceStackStatus,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Whether it is the one meant when none is named.
    pub is_default: bool,
}

record! {
    WorkspaceStack as "workspace stack" by id, asked WorkspaceStackQuery;
    of platform_id;
    audited, touched updated_at;
}

/// Questions about workspace stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkspaceStackQuery {
    /// All, newest first.
    All,
}
