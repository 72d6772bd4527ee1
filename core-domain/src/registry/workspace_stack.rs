//! Workspace stacks (interface: "Workspace stack").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{
    EntityId, Environment, IllegalTransition, JobId, Line, Machine, Name, PlatformId, StackId,
    TemplateId, Timestamp, VersionId, record, state_machine, text_enum,
};

/// A stack of an entity, which groups features and resources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct WorkspaceStack {
    /// The id of the workspace stack.
    pub id: StackId,
    /// The entity that the stack belongs to.
    pub tenant_id: EntityId,
    /// The platform that the stack belongs to.
    pub platform_id: PlatformId,
    /// The display name of the stack. It is unique per entity.
    pub name: Name,
    /// The stack template that the stack was created from. `null` if there is none. If the stack was created by
    /// request, the value is only a label and need not name an existing template.
    pub template_id: Option<Line<1, 255>>,
    /// The repository that the stack is built from. `null` if none is set.
    pub repo_name: Option<Line<1, 255>>,
    /// The status of the stack.
    pub status: WorkspaceStackStatus,
    /// When the stack was created.
    pub created_at: Timestamp,
    /// When the stack was last changed.
    pub updated_at: Timestamp,
    /// Whether the stack is the default stack of its entity. An entity has at most one.
    pub is_default: bool,
    /// The template version that was activated last. `None` for a stack that was created by request.
    #[serde(skip)]
    pub version_id: Option<VersionId>,
    /// The environment in which the stack runs. `None` for a stack that was created by request.
    #[serde(skip)]
    pub environment: Option<Environment>,
    /// The job that activates or deactivates the stack, or did so last. `None` after the stack ended with its
    /// environment.
    #[serde(skip)]
    pub provision_job_id: Option<JobId>,
}

/// The template version and the environment of an activation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivatedVersion {
    /// The stack template of the version.
    pub template_id: TemplateId,
    /// The version that is activated.
    pub version_id: VersionId,
    /// The environment in which the stack runs.
    pub environment: Environment,
}

record! {
    WorkspaceStack as "workspace stack" by id, asked WorkspaceStackQuery;
    of platform_id;
    audited, touched updated_at;
}

impl WorkspaceStack {
    /// Creates an active stack of the platform, for which nothing is provisioned.
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
            version_id: None,
            environment: None,
            provision_job_id: None,
        }
    }

    /// Creates a pending stack of the platform, which a job activates.
    #[must_use]
    pub fn create_pending(
        id: StackId,
        platform_id: &PlatformId,
        tenant_id: EntityId,
        name: Name,
        activated: &ActivatedVersion,
        now: Timestamp,
    ) -> Self {
        let command = CreateWorkspaceStack {
            tenant_id,
            name,
            is_default: false,
            template_id: Line::parse(activated.template_id.as_str()).ok(),
            repo_name: None,
        };
        Self {
            status: WorkspaceStackStatus::Pending,
            version_id: Some(activated.version_id.clone()),
            environment: Some(activated.environment),
            ..Self::create(id, platform_id, command, now)
        }
    }

    /// Applies an event. `End` clears `provision_job_id`.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the event is not allowed in the current status.
    pub fn after(mut self, event: WorkspaceStackEvent) -> Result<Self, IllegalTransition> {
        self.status = event.next(self.status)?;
        if event == WorkspaceStackEvent::End {
            self.provision_job_id = None;
        }
        Ok(self)
    }

    /// Returns whether apps can be created in the stack: it is pending or active.
    #[must_use]
    pub const fn accepts_apps(&self) -> bool {
        matches!(
            self.status,
            WorkspaceStackStatus::Pending | WorkspaceStackStatus::Active
        )
    }
}

/// Queries for workspace stacks, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceStackQuery {
    /// The stacks that match a filter.
    Listed(WorkspaceStackFilter),
    /// The default stack of an entity.
    DefaultOf(EntityId),
    /// The stacks of an entity that were activated from a template in an environment.
    OfTemplate {
        /// The entity that the stacks belong to.
        tenant_id: EntityId,
        /// The template that the stacks were activated from.
        template_id: TemplateId,
        /// The environment in which the stacks run.
        environment: Environment,
        /// The statuses of the stacks.
        status: [WorkspaceStackStatus; 2],
    },
}

impl WorkspaceStackQuery {
    /// Returns the query for all stacks of an entity.
    #[must_use]
    pub fn of_tenant(tenant_id: &EntityId) -> Self {
        Self::Listed(WorkspaceStackFilter {
            tenant_id: Some(tenant_id.clone()),
        })
    }
}

/// Query parameters of the list of workspace stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceStackFilter {
    /// Returns only stacks of this entity.
    pub tenant_id: Option<EntityId>,
}

/// Request body that creates a workspace stack.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateWorkspaceStack {
    /// The entity that the stack belongs to.
    pub tenant_id: EntityId,
    /// The display name of the stack. It is unique per entity.
    pub name: Name,
    /// Whether the stack becomes the default stack of its entity, in place of the current one. Default: `false`.
    #[serde(default)]
    pub is_default: bool,
    /// The stack template that the stack is created from. The value is only a label and is not checked. Default: none.
    pub template_id: Option<Line<1, 255>>,
    /// The repository that the stack is built from. Default: none.
    pub repo_name: Option<Line<1, 255>>,
}

text_enum! {
    /// The status of a workspace stack. A stack that was created by request is `active`, because nothing is provisioned
    /// for it.
    pub enum WorkspaceStackStatus {
        /// The activation is queued or in progress.
        Pending = "pending",
        /// The stack is provisioned, or was created by request.
        Active = "active",
        /// The removal of the stack is queued or in progress.
        Deactivating = "deactivating",
        /// The stack is removed. Its data may still exist.
        Inactive = "inactive",
        /// The last job of the stack stopped without success.
        Failed = "failed",
    }
}

state_machine! {
    /// Events of a workspace stack. An activated stack is created `pending`. An operator may resume a failed job
    /// (`activate`, `deactivate`) or declare it done (`activated`, `deactivated`).
    pub enum WorkspaceStackEvent moves WorkspaceStackStatus {
        /// A caller requests the activation.
        Activate = "activate": [Inactive, Failed] => Pending, "workspace_stack.activation_queued";
        /// The job has provisioned the stack.
        Activated = "activated": [Pending, Failed] => Active, "workspace_stack.activated";
        /// A caller requests the removal of the stack, or of its remaining objects.
        Deactivate = "deactivate": [Pending, Active, Deactivating, Inactive, Failed] => Deactivating, "workspace_stack.deactivation_queued";
        /// The job has removed the stack.
        Deactivated = "deactivated": [Deactivating, Failed] => Inactive, "workspace_stack.deactivated";
        /// The job stopped without success.
        Fail = "fail": [Pending, Deactivating] => Failed, "workspace_stack.failed";
        /// The environment of the stack is removed, and the stack with it.
        End = "end": [Pending, Active, Deactivating, Failed] => Inactive, "workspace_stack.ended";
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::kernel::assert_only_table_moves;

    use super::*;

    proptest! {
        #[test]
        fn random_events_follow_the_transition_table(
            events in prop::collection::vec(prop::sample::select(WorkspaceStackEvent::ALL), 1..30),
        ) {
            assert_only_table_moves(WorkspaceStackStatus::Pending, &events);
        }
    }
}
