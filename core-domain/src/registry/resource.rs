//! Infrastructure resources (interface: "Infrastructure resource").

use serde_json::Value;

use super::ResourceStatus;
use crate::kernel::{
    EntityId, Environment, JobId, PlatformId, ResourceId, StackId, Timestamp, text_enum,
};
use crate::port::Record;

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

/// An object at the infrastructure provider, as the registry knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// The resource's id.
    pub id: ResourceId,
    /// The platform it belongs to.
    pub platform_id: PlatformId,
    /// The entity it belongs to.
    pub entity_id: EntityId,
    /// The workspace stack it was made for; for filters, not shown.
    pub stack_id: Option<StackId>,
    /// What it is there for: `db`, `cache`.
    pub service_name: String,
    /// What kind of object it is.
    pub resource_type: ResourceType,
    /// Where it runs.
    pub environment: Environment,
    /// Its name at the provider; no two living resources of a platform, type and environment share one.
    pub cf_name: String,
    /// Its id at the provider.
    pub cf_id: Option<String>,
    /// Where it can be reached.
    pub cf_url: Option<String>,
    /// Where it stands.
    pub status: ResourceStatus,
    /// The job that made it.
    pub provision_job_id: Option<JobId>,
    /// Free-form settings; kept as they came.
    pub config: Value,
    /// When it was entered.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it was deleted.
    pub deleted_at: Option<Timestamp>,
}

impl Record for Resource {
    type Query = ResourceQuery;
    const KIND: &'static str = "resource";

    fn key(&self) -> &str {
        self.id.as_str()
    }
}

/// Questions about resources; newest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResourceQuery {
    /// Those of a platform.
    OfPlatform {
        /// The platform.
        platform_id: PlatformId,
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
    /// The living ones with this name at the provider.
    Named {
        /// The name.
        cf_name: String,
        /// Of this platform alone.
        platform_id: Option<PlatformId>,
    },
    /// The living one that this name, type and environment mean on a platform.
    Exactly {
        /// The platform.
        platform_id: PlatformId,
        /// The type.
        resource_type: ResourceType,
        /// The environment.
        environment: Environment,
        /// The name.
        cf_name: String,
    },
    /// The living ones of a type on a platform that were entered up to an instant.
    LivingOfType {
        /// The platform.
        platform_id: PlatformId,
        /// The type.
        resource_type: ResourceType,
        /// In this environment alone.
        environment: Option<Environment>,
        /// Entered at this instant or before.
        until: Timestamp,
    },
}
