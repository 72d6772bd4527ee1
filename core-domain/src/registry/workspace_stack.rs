//! Workspace stacks (interface: "Workspace stack").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{
    EntityId, Environment, IllegalMove, JobId, Line, Machine, Name, PlatformId, StackId,
    TemplateId, Timestamp, VersionId, record, state_machine, text_enum,
};

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
    /// The version it was activated in last; none for one that was entered by request.
    #[serde(skip)]
    pub version_id: Option<VersionId>,
    /// Where it runs; none for one that was entered by request.
    #[serde(skip)]
    pub environment: Option<Environment>,
    /// The job that moves it; none once it has ended with its environment.
    #[serde(skip)]
    pub provision_job_id: Option<JobId>,
}

/// What a stack is activated as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActivatedVersion {
    /// The template.
    pub template_id: TemplateId,
    /// The version of it.
    pub version_id: VersionId,
    /// Where the stack runs.
    pub environment: Environment,
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
            version_id: None,
            environment: None,
            provision_job_id: None,
        }
    }

    /// A new stack of the platform that a job activates.
    #[must_use]
    pub fn activated(
        id: StackId,
        platform_id: &PlatformId,
        (tenant_id, name): (EntityId, Name),
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

    /// The stack after an event.
    ///
    /// # Errors
    /// [`IllegalMove`] when it cannot happen to it.
    pub fn after(mut self, event: WorkspaceStackEvent) -> Result<Self, IllegalMove> {
        self.status = event.next(self.status)?;
        if event == WorkspaceStackEvent::End {
            self.provision_job_id = None;
        }
        Ok(self)
    }

    /// Whether apps may be made for it.
    #[must_use]
    pub const fn takes_apps(&self) -> bool {
        matches!(
            self.status,
            WorkspaceStackStatus::Pending | WorkspaceStackStatus::Active
        )
    }
}

/// Questions about workspace stacks; newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkspaceStackQuery {
    /// Those a list shows.
    Listed(WorkspaceStackFilter),
    /// The default one of an entity.
    DefaultOf(EntityId),
    /// Those of an entity that were activated from a template in an environment.
    OfTemplate {
        /// The entity.
        tenant_id: EntityId,
        /// The template.
        template_id: TemplateId,
        /// The environment.
        environment: Environment,
        /// Where they stand.
        status: [WorkspaceStackStatus; 2],
    },
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

text_enum! {
    /// Where a workspace stack stands. One that is entered by request is `active`, because nothing is provisioned for it.
    pub enum WorkspaceStackStatus {
        /// Its activation waits for its turn, or is under way.
        Pending = "pending",
        /// There.
        Active = "active",
        /// Being taken down.
        Deactivating = "deactivating",
        /// Taken down; its data may be there still.
        Inactive = "inactive",
        /// The job that moves it has stopped.
        Failed = "failed",
    }
}

state_machine! {
    /// What happens to a workspace stack. One that is activated is created `pending`. An operator may let a failed job go on
    /// (`activate`, `deactivate`) or declare it done (`activated`, `deactivated`).
    pub enum WorkspaceStackEvent moves WorkspaceStackStatus {
        /// It is asked for.
        Activate = "activate": [Inactive, Failed] => Pending, "workspace_stack.activation_queued";
        /// It is there.
        Activated = "activated": [Pending, Failed] => Active, "workspace_stack.activated";
        /// It is to be taken down, or what is left of it.
        Deactivate = "deactivate": [Pending, Active, Deactivating, Inactive, Failed] => Deactivating, "workspace_stack.deactivation_queued";
        /// It is taken down.
        Deactivated = "deactivated": [Deactivating, Failed] => Inactive, "workspace_stack.deactivated";
        /// Its job has stopped.
        Fail = "fail": [Pending, Deactivating] => Failed, "workspace_stack.failed";
        /// The environment it runs in goes, and it with it.
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
        fn any_sequence_of_events_makes_only_the_moves_of_the_table(
            events in prop::collection::vec(prop::sample::select(WorkspaceStackEvent::ALL), 1..30),
        ) {
            assert_only_table_moves(WorkspaceStackStatus::Pending, &events);
        }
    }
}
