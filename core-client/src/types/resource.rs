//! Resources: the objects of a platform at the infrastructure provider.

use serde::{Deserialize, Serialize};

use super::environment::Environment;
use super::open_enum::open_enum;

open_enum! {
    /// The type of a resource.
    pub enum ResourceType {
        /// A program that serves requests.
        Worker = "worker",
        /// A static site.
        Pages = "pages",
        /// A SQL database.
        D1 = "d1",
        /// A bucket for files.
        R2 = "r2",
        /// A store of keys and values.
        Kv = "kv",
        /// A message queue.
        Queue = "queue",
    }
}

open_enum! {
    /// The status of a resource.
    pub enum ResourceStatus {
        /// The object is not created yet.
        Pending = "pending",
        /// A job creates the object.
        Provisioning = "provisioning",
        /// The object exists.
        Active = "active",
        /// The object could not be created.
        Failed = "failed",
        /// The object is deleted.
        Deleted = "deleted",
    }
}

/// An object of a platform at the infrastructure provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Resource {
    /// The id of the resource.
    pub id: String,
    /// The purpose of the resource, such as `site` or `db`.
    pub service_name: String,
    /// The type of the resource.
    pub resource_type: ResourceType,
    /// The environment in which the resource runs.
    pub environment: Environment,
    /// The name of the object at the provider.
    pub cf_name: String,
    /// The URL of the object; `None` if it has none.
    pub cf_url: Option<String>,
    /// The status of the resource.
    pub status: ResourceStatus,
}
