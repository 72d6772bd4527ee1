//! Infrastructure resources (interface: "Infrastructure resource").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AccountName, MAX_FREE_FORM_BYTES, Platform};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::json_text;
use crate::kernel::{
    BoundedJson, EntityId, Environment, FeatureActivationId, IllegalTransition, JobId, JsonText,
    Line, Machine, Patch, PlatformId, ResourceId, StackId, Timestamp, record, state_machine,
    text_enum, update_command,
};

text_enum! {
    /// The type of an infrastructure resource.
    pub enum ResourceType {
        /// A script that responds to requests.
        Worker = "worker",
        /// A static site.
        Pages = "pages",
        /// A SQL database.
        D1 = "d1",
        /// A bucket of objects.
        R2 = "r2",
        /// A key-value namespace.
        Kv = "kv",
        /// A message queue.
        Queue = "queue",
    }
}

impl ResourceType {
    /// Returns whether resources of this type store data.
    #[must_use]
    pub const fn is_store(self) -> bool {
        matches!(self, Self::D1 | Self::R2 | Self::Kv | Self::Queue)
    }
}

/// A name or id of an object at the infrastructure provider, or the name of a service. 1 to 255 characters.
pub type ProviderName = Line<1, 255>;

/// An object at the infrastructure provider, as recorded in the registry.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Resource {
    /// The id of the resource.
    pub id: ResourceId,
    /// The platform that the resource belongs to.
    pub platform_id: PlatformId,
    /// The entity that the resource belongs to.
    pub entity_id: EntityId,
    /// The workspace stack that the resource was created for, if any. Used by queries.
    #[serde(skip)]
    pub stack_id: Option<StackId>,
    /// The feature that owns the resource: its worker, or a store with its data. `None` for all other resources.
    /// Removing the data of a feature removes only the stores that the feature owns.
    #[serde(skip)]
    pub feature_activation_id: Option<FeatureActivationId>,
    /// The purpose of the resource, such as `db` or `cache`.
    pub service_name: ProviderName,
    /// The type of the object.
    pub resource_type: ResourceType,
    /// The environment in which the object runs.
    pub environment: Environment,
    /// The name of the object at the provider. It is unique per type and provider account among resources that are not
    /// deleted.
    pub cf_name: ProviderName,
    /// The provider account that contains the object. `None` means the installation's own account.
    #[serde(skip)]
    pub cf_account_id: Option<AccountName>,
    /// The id of the object at the provider. `null` if it is unknown.
    pub cf_id: Option<Line<0, 255>>,
    /// The URL of the object. `null` if there is none.
    #[schemars(extend("format" = "uri"))]
    pub cf_url: Option<String>,
    /// The status of the resource.
    pub status: ResourceStatus,
    /// The job that creates the object. `null` if there is none.
    pub provision_job_id: Option<JobId>,
    /// The job that will remove the object of a resource that was deleted together with its entity. `None` after the
    /// job has removed it, and for all other resources.
    #[serde(skip)]
    pub removal_job_id: Option<JobId>,
    /// Free-form settings of the resource.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json_text()"))]
    pub config: JsonText,
    /// When the resource was recorded.
    pub created_at: Timestamp,
    /// When the resource was last changed.
    pub updated_at: Timestamp,
    /// When the resource was deleted. `null` if it is not deleted.
    pub deleted_at: Option<Timestamp>,
}

// The audit log omits the settings: they are free-form and may contain sensitive data.
record! {
    Resource as "resource" by id, asked ResourceQuery;
    of platform_id;
    audited, touched updated_at, without "config";
}

impl Resource {
    /// Creates a pending resource of the platform, in the provider account of the platform.
    #[must_use]
    pub fn create(
        id: ResourceId,
        platform: &Platform,
        entity_id: EntityId,
        command: CreateResource,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            platform_id: platform.id.clone(),
            entity_id,
            stack_id: command.stack_id,
            feature_activation_id: None,
            service_name: command.service_name,
            resource_type: command.resource_type,
            environment: command.environment,
            cf_name: command.cf_name,
            cf_account_id: platform.cf_account_id.clone(),
            cf_id: command.cf_id,
            cf_url: command.cf_url,
            status: ResourceStatus::Pending,
            provision_job_id: command.provision_job_id,
            removal_job_id: None,
            config: command.config.into(),
            created_at: now,
            updated_at: now,
            deleted_at: None,
        }
    }
}

/// Queries for resources, newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceQuery {
    /// The resources of the platform.
    All {
        /// Includes deleted resources.
        deleted: bool,
    },
    /// The resources of an entity.
    OfEntity {
        /// The entity that the resources belong to.
        entity_id: EntityId,
        /// Includes deleted resources.
        deleted: bool,
    },
    /// The resources that were created for a workspace stack and are not deleted.
    OfStack(StackId),
    /// The resources that a feature owns and that are not deleted.
    OfFeature(FeatureActivationId),
    /// The deleted resources of a type whose objects a job will remove.
    ToRemove {
        /// The job that will remove the objects.
        job_id: JobId,
        /// The type of the resources.
        resource_type: ResourceType,
    },
    /// The resources with this name at the provider that are not deleted.
    Named(String),
    /// The resource of an object at the provider that is not deleted. At most one has these values.
    OfObject {
        /// The account of the object; `None` for the account of the installation.
        cf_account_id: Option<AccountName>,
        /// The type of the resource.
        resource_type: ResourceType,
        /// The name of the object.
        cf_name: ProviderName,
    },
    /// The resources with this name at the provider, including deleted ones.
    EverNamed(String),
    /// The resources in an environment that are not deleted.
    InEnvironment(Environment),
    /// The resource of a type with a name at the provider that is not deleted, in whatever environment.
    Exactly {
        /// The type of the resource.
        resource_type: ResourceType,
        /// The name of the object at the provider.
        cf_name: ProviderName,
    },
    /// The resources of a type that are not deleted and were recorded at or before an instant.
    OfTypeUntil {
        /// The type of the resources.
        resource_type: ResourceType,
        /// Restricts the result to this environment. `None` means all environments.
        environment: Option<Environment>,
        /// The latest time at which the resources were recorded.
        until: Timestamp,
    },
}

/// Request body that records a resource.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateResource {
    /// The workspace stack that the resource is for. Resources that jobs create for the platform itself have none.
    #[schemars(required)]
    pub stack_id: Option<StackId>,
    /// The type of the object.
    pub resource_type: ResourceType,
    /// The purpose of the resource, such as `db` or `cache`.
    pub service_name: ProviderName,
    /// The environment in which the object runs.
    pub environment: Environment,
    /// The name of the object at the provider.
    pub cf_name: ProviderName,
    /// The id of the object at the provider. Default: none.
    pub cf_id: Option<Line<0, 255>>,
    /// The URL of the object. Default: none.
    #[schemars(length(max = 2048), extend("format" = "uri"))]
    pub cf_url: Option<String>,
    /// The job of the platform that creates the object. Default: none.
    pub provision_job_id: Option<JobId>,
    /// Free-form settings of at most 64 KiB. Default: `null`.
    #[serde(default)]
    pub config: BoundedJson<MAX_FREE_FORM_BYTES>,
}

update_command! {
    /// Request body that updates a resource. Omitted fields stay unchanged.
    pub struct UpdateResource for Resource {
        also {
            /// The new status of the resource.
            status: Option<ResourceStatus>,
            /// Free-form settings of at most 64 KiB, which replace all current settings. `null` clears them.
            config: Patch<BoundedJson<MAX_FREE_FORM_BYTES>>,
        }
        optional {
            /// The id of the object at the provider. `null` clears it.
            cf_id: Line<0, 255>,
            /// The URL of the object. `null` clears it.
            #[schemars(length(max = 2048), extend("format" = "uri"))]
            cf_url: String,
            /// The job of the platform that creates the object. `null` clears it.
            provision_job_id: JobId,
        }
    }
}

text_enum! {
    /// The status of a resource.
    pub enum ResourceStatus {
        /// The resource is recorded. The creation of its object has not begun.
        Pending = "pending",
        /// The object is being created.
        Provisioning = "provisioning",
        /// The object exists.
        Active = "active",
        /// The object could not be created, or no longer exists.
        Failed = "failed",
        /// The resource is deleted. Final status.
        Deleted = "deleted",
    }
}

state_machine! {
    /// Events of a resource, which is recorded as `pending`.
    pub enum ResourceEvent moves ResourceStatus {
        /// The creation of the object begins or is repeated.
        Provision = "provision": [Pending, Failed] => Provisioning, "resource.updated";
        /// The object exists.
        Activate = "activate": [Provisioning] => Active, "resource.updated";
        /// The object could not be created.
        Fail = "fail": [Provisioning] => Failed, "resource.updated";
        /// The object existed and no longer does.
        Lose = "lose": [Active] => Failed, "resource.updated";
        /// The resource is deleted.
        Delete = "delete": [Pending, Provisioning, Active, Failed] => Deleted, "resource.deleted";
    }
}

impl ResourceEvent {
    /// Returns the event that leads to a status that a caller requests; `None` if the status stays the same. Unlike
    /// [`Machine::between`], it never returns `Lose`, because only jobs can find that an object is lost.
    ///
    /// # Errors
    /// [`IllegalTransition`] with the statuses from which the requested one can be reached.
    pub fn between_for_caller(
        from: ResourceStatus,
        to: ResourceStatus,
    ) -> Result<Option<Self>, IllegalTransition> {
        if from != to && to == ResourceStatus::Failed {
            return Self::Fail.next(from).map(|_| Some(Self::Fail));
        }
        Self::between(from, to)
    }
}

impl Resource {
    /// Applies an event. Sets `deleted_at` when the resource is deleted.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the event is not allowed in the current status.
    pub fn after(
        mut self,
        event: ResourceEvent,
        now: Timestamp,
    ) -> Result<Self, IllegalTransition> {
        self.status = event.next(self.status)?;
        if self.status == ResourceStatus::Deleted {
            self.deleted_at = Some(now);
        }
        Ok(self)
    }

    /// Returns the resource after its object was found at the provider, whatever its status was before.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the resource is deleted.
    pub fn mark_present(self, now: Timestamp) -> Result<Self, IllegalTransition> {
        match self.status {
            ResourceStatus::Active => Ok(self),
            ResourceStatus::Provisioning => self.after(ResourceEvent::Activate, now),
            _ => {
                let provisioning = self.after(ResourceEvent::Provision, now)?;
                provisioning.after(ResourceEvent::Activate, now)
            }
        }
    }

    /// Returns the resource after the creation of its object began or was repeated.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the resource is active or deleted.
    pub fn begin_provisioning(self, now: Timestamp) -> Result<Self, IllegalTransition> {
        match self.status {
            ResourceStatus::Provisioning => Ok(self),
            _ => self.after(ResourceEvent::Provision, now),
        }
    }

    /// Returns the resource after it became known that its object was not created.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the resource is active or deleted.
    pub fn fail_provisioning(self, now: Timestamp) -> Result<Self, IllegalTransition> {
        match self.status {
            ResourceStatus::Failed => Ok(self),
            _ => self
                .begin_provisioning(now)?
                .after(ResourceEvent::Fail, now),
        }
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
            events in prop::collection::vec(prop::sample::select(ResourceEvent::ALL), 1..30),
        ) {
            assert_only_table_moves(ResourceStatus::Pending, &events);
        }
    }
}
