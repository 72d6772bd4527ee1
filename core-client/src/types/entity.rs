//! Entities: the tenants of a platform.

use serde::{Deserialize, Serialize};

use super::open_enum::open_enum;

open_enum! {
    /// The status of an entity.
    pub enum EntityStatus {
        /// The entity is in use.
        Active = "active",
        /// The entity is suspended.
        Suspended = "suspended",
        /// The entity is deleted.
        Deleted = "deleted",
    }
}

open_enum! {
    /// The type of an entity.
    pub enum EntityType {
        /// A customer of the platform.
        Tenant = "tenant",
        /// A part of a tenant.
        Subtenant = "subtenant",
    }
}

/// A tenant of a platform, or a part of a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Entity {
    /// The id of the entity. It never changes.
    pub id: String,
    /// The name of the entity in addresses, unique among its siblings.
    pub slug: String,
    /// The display name of the entity.
    pub name: String,
    /// The type of the entity.
    #[serde(rename = "type")]
    pub kind: EntityType,
    /// The parent entity; `None` for a tenant.
    pub parent_id: Option<String>,
    /// The status of the entity.
    pub status: EntityStatus,
    /// The time at which the entity was created.
    pub created_at: String,
}
