//! Workspace stacks (interface: "Workspace stack").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{EntityId, Line, Name, PlatformId, StackId, Timestamp, record, text_enum};

text_enum! {
    /// Where a workspace stack stands. One that is entered by request is `active`, because nothing is provisioned for it;
    /// the others are for stacks that come from an activation.
    pub enum WorkspaceStackStatus {
        /// Its activation waits for its turn.
        Pending = "pending",
        /// There.
        Active = "active",
        /// Being taken down.
        Deactivating = "deactivating",
        /// Taken down.
        Inactive = "inactive",
        /// Could not be activated.
        Failed = "failed",
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
    /// What people call it; no two stacks of an entity share one.
    pub name: Name,
    /// The stack template it was made from. A label: whether there is such a template is asked when one is activated.
    pub template_id: Option<Line<1, 255>>,
    /// The repository it is built from.
    pub repo_name: Option<Line<1, 255>>,
    /// Where it stands.
    pub status: WorkspaceStackStatus,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Whether it is the one meant when none is named; an entity has one such stack at most.
    pub is_default: bool,
}

record! {
    WorkspaceStack as "workspace stack" by id, asked WorkspaceStackQuery;
    of platform_id;
    audited, touched updated_at;
}

impl WorkspaceStack {
    /// A new stack of the platform.
    #[must_use]
    pub fn create(
        id: StackId,
        platform_id: &PlatformId,
        command: CreateWorkspaceStack,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            tenant_id: command.tenant_id,
            platform_id: platform_id.clone(),
            name: command.name,
            template_id: command.template_id,
            repo_name: command.repo_name,
            status: WorkspaceStackStatus::Active,
            created_at: now,
            updated_at: now,
            is_default: command.is_default,
        }
    }
}

/// Questions about workspace stacks; newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceStackQuery {
    /// Those a list shows.
    Listed(WorkspaceStackFilter),
    /// The default one of an entity.
    DefaultOf(EntityId),
}

impl WorkspaceStackQuery {
    /// All of an entity.
    #[must_use]
    pub fn of_tenant(tenant_id: &EntityId) -> Self {
        Self::Listed(WorkspaceStackFilter {
            tenant_id: Some(tenant_id.clone()),
        })
    }
}

/// Which workspace stacks a list shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceStackFilter {
    /// Of this entity alone.
    pub tenant_id: Option<EntityId>,
}

/// Creates a workspace stack.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateWorkspaceStack {
    /// The entity it is for.
    pub tenant_id: EntityId,
    /// What people call it.
    pub name: Name,
    /// Make it the entity's default, in place of the one it has.
    #[serde(default)]
    pub is_default: bool,
    /// The stack template it is made from; a label.
    pub template_id: Option<Line<1, 255>>,
    /// The repository it is built from.
    pub repo_name: Option<Line<1, 255>>,
}
