//! Infrastructure resources (interface: "Infrastructure resource").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AccountName, MAX_FREE_FORM_BYTES, Platform};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::json_text;
use crate::kernel::{
    BoundedJson, EntityId, Environment, FeatureActivationId, IllegalMove, JobId, JsonText, Line,
    Machine, Patch, PlatformId, ResourceId, StackId, Timestamp, record, state_machine, text_enum,
    update_command,
};

text_enum! {
    /// What kind of object a resource is.
    pub enum ResourceType {
        /// A script that answers requests.
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
    /// Whether it holds data.
    #[must_use]
    pub const fn is_store(self) -> bool {
        matches!(self, Self::D1 | Self::R2 | Self::Kv | Self::Queue)
    }
}

/// A name or an id at the infrastructure provider, or of a service.
pub type ProviderName = Line<1, 255>;

/// An object at the infrastructure provider, as the registry knows it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Resource {
    /// The resource's id.
    pub id: ResourceId,
    /// The platform it belongs to.
    pub platform_id: PlatformId,
    /// The entity it belongs to.
    pub entity_id: EntityId,
    /// The workspace stack it was created for; for filters.
    #[serde(skip)]
    pub stack_id: Option<StackId>,
    /// The feature that owns it: its worker, or a store with its data. `None` for everything else. Removing the data of a
    /// feature removes the stores that the feature owns, and no other ones.
    #[serde(skip)]
    pub feature_activation_id: Option<FeatureActivationId>,
    /// What it is there for: `db`, `cache`.
    pub service_name: ProviderName,
    /// What kind of object it is.
    pub resource_type: ResourceType,
    /// Where it runs.
    pub environment: Environment,
    /// Its name at the provider; no two resources of a type in one provider account that are not deleted share one.
    pub cf_name: ProviderName,
    /// The provider account it lives in; the installation's own when there is none.
    #[serde(skip)]
    pub cf_account_id: Option<AccountName>,
    /// Its id at the provider.
    pub cf_id: Option<Line<0, 255>>,
    /// Where it can be reached.
    #[schemars(extend("format" = "uri"))]
    pub cf_url: Option<String>,
    /// Where it stands.
    pub status: ResourceStatus,
    /// The job that creates it.
    pub provision_job_id: Option<JobId>,
    /// The job that will remove the object, for an entry that was deleted together with its entity. `None` once the job has
    /// removed it, and for all other entries.
    #[serde(skip)]
    pub removal_job_id: Option<JobId>,
    /// Free-form settings; kept as they came.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json_text()"))]
    pub config: JsonText,
    /// When it was entered.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it was deleted.
    pub deleted_at: Option<Timestamp>,
}

// Settings are free-form, and may hold what no audit should keep.
record! {
    Resource as "resource" by id, asked ResourceQuery;
    of platform_id;
    audited, touched updated_at, without "config";
}

impl Resource {
    /// A new entry of the platform, in the provider account the platform has.
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

/// Questions about resources; newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceQuery {
    /// All.
    All {
        /// Deleted ones too.
        deleted: bool,
    },
    /// Those of an entity.
    OfEntity {
        /// The entity.
        entity_id: EntityId,
        /// Deleted ones too.
        deleted: bool,
    },
    /// Those that were created for a workspace stack and are not deleted.
    OfStack(StackId),
    /// Those that a feature owns and that are not deleted.
    OfFeature(FeatureActivationId),
    /// The deleted ones of a type whose objects a job will remove.
    ToRemove {
        /// The job.
        job_id: JobId,
        /// The type.
        resource_type: ResourceType,
    },
    /// Those with this name at the provider that are not deleted.
    Named(String),
    /// Those with this name at the provider, deleted ones too.
    EverNamed(String),
    /// Those in an environment that are not deleted.
    InEnvironment(Environment),
    /// The one that this name and type mean and that is not deleted, whatever environment it says.
    Exactly {
        /// The type.
        resource_type: ResourceType,
        /// The name.
        cf_name: ProviderName,
    },
    /// Those of a type that are not deleted and were entered up to an instant.
    OfTypeUntil {
        /// The type.
        resource_type: ResourceType,
        /// In this environment alone.
        environment: Option<Environment>,
        /// Entered at this instant or before.
        until: Timestamp,
    },
}

/// Enters a resource into the catalogue.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateResource {
    /// The workspace stack it is for; what a job creates for the platform itself has none.
    #[schemars(required)]
    pub stack_id: Option<StackId>,
    /// What kind of object it is.
    pub resource_type: ResourceType,
    /// What it is there for.
    pub service_name: ProviderName,
    /// Where it runs.
    pub environment: Environment,
    /// Its name at the provider.
    pub cf_name: ProviderName,
    /// Its id at the provider.
    pub cf_id: Option<Line<0, 255>>,
    /// Where it can be reached.
    #[schemars(length(max = 2048), extend("format" = "uri"))]
    pub cf_url: Option<String>,
    /// The job of the platform that creates it.
    pub provision_job_id: Option<JobId>,
    /// Free-form settings of at most 64 KiB.
    #[serde(default)]
    pub config: BoundedJson<MAX_FREE_FORM_BYTES>,
}

update_command! {
    /// Changes a resource's entry.
    pub struct UpdateResource for Resource {
        also {
            /// Where it stands.
            status: Option<ResourceStatus>,
            /// Free-form settings of at most 64 KiB; they replace the ones there are.
            config: Patch<BoundedJson<MAX_FREE_FORM_BYTES>>,
        }
        optional {
            /// Its id at the provider; `null` takes it away.
            cf_id: Line<0, 255>,
            /// Where it can be reached; `null` takes it away.
            #[schemars(length(max = 2048), extend("format" = "uri"))]
            cf_url: String,
            /// The job of the platform that creates it; `null` takes it away.
            provision_job_id: JobId,
        }
    }
}

text_enum! {
    /// Where a resource stands.
    pub enum ResourceStatus {
        /// Entered, not begun.
        Pending = "pending",
        /// Being created.
        Provisioning = "provisioning",
        /// There.
        Active = "active",
        /// Could not be created.
        Failed = "failed",
        /// Gone. Never left.
        Deleted = "deleted",
    }
}

state_machine! {
    /// What happens to a resource. It is entered `pending`.
    pub enum ResourceEvent moves ResourceStatus {
        /// Work on it begins, or begins again.
        Provision = "provision": [Pending, Failed] => Provisioning, "resource.updated";
        /// It is there.
        Activate = "activate": [Provisioning] => Active, "resource.updated";
        /// It could not be created.
        Fail = "fail": [Provisioning] => Failed, "resource.updated";
        /// It was there, and is not any more.
        Lose = "lose": [Active] => Failed, "resource.updated";
        /// It is deleted.
        Delete = "delete": [Pending, Provisioning, Active, Failed] => Deleted, "resource.deleted";
    }
}

impl ResourceEvent {
    /// As [`Machine::between`], of what people may say of a resource: that one is lost only a job finds.
    ///
    /// # Errors
    /// [`IllegalMove`] names the statuses from which the wanted one can be reached.
    pub fn said(from: ResourceStatus, to: ResourceStatus) -> Result<Option<Self>, IllegalMove> {
        if from != to && to == ResourceStatus::Failed {
            return Self::Fail.next(from).map(|_| Some(Self::Fail));
        }
        Self::between(from, to)
    }
}

impl Resource {
    /// The resource after an event.
    ///
    /// # Errors
    /// [`IllegalMove`] when it cannot happen to it.
    pub fn after(mut self, event: ResourceEvent, now: Timestamp) -> Result<Self, IllegalMove> {
        self.status = event.next(self.status)?;
        if self.status == ResourceStatus::Deleted {
            self.deleted_at = Some(now);
        }
        Ok(self)
    }

    /// The resource once it was found to be there, whatever was known of it before.
    ///
    /// # Errors
    /// [`IllegalMove`] for a deleted one.
    pub fn observed(self, now: Timestamp) -> Result<Self, IllegalMove> {
        match self.status {
            ResourceStatus::Active => Ok(self),
            ResourceStatus::Provisioning => self.after(ResourceEvent::Activate, now),
            _ => {
                let provisioning = self.after(ResourceEvent::Provision, now)?;
                provisioning.after(ResourceEvent::Activate, now)
            }
        }
    }

    /// The resource once work on it begins, or begins again.
    ///
    /// # Errors
    /// [`IllegalMove`] for one that is there, and for a deleted one.
    pub fn begun(self, now: Timestamp) -> Result<Self, IllegalMove> {
        match self.status {
            ResourceStatus::Provisioning => Ok(self),
            _ => self.after(ResourceEvent::Provision, now),
        }
    }

    /// The resource once it is known that it was not created.
    ///
    /// # Errors
    /// [`IllegalMove`] for one that is there, and for a deleted one.
    pub fn not_made(self, now: Timestamp) -> Result<Self, IllegalMove> {
        match self.status {
            ResourceStatus::Failed => Ok(self),
            _ => self.begun(now)?.after(ResourceEvent::Fail, now),
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
        fn any_sequence_of_events_makes_only_the_moves_of_the_table(
            events in prop::collection::vec(prop::sample::select(ResourceEvent::ALL), 1..30),
        ) {
            assert_only_table_moves(ResourceStatus::Pending, &events);
        }
    }
}
