//! Entities: the tenants and sub-tenants of a platform (interface: "Entity").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{
    EntityId, Name, PlatformId, Slug, Timestamp, record, state_machine, text_enum, update_command,
};

text_enum! {
    /// What kind of entity.
    pub enum EntityType {
        /// At the top of a tree.
        Tenant = "tenant",
        /// Below another entity.
        Subtenant = "subtenant",
    }
}

text_enum! {
    /// Where an entity stands.
    pub enum EntityStatus {
        /// In use.
        Active = "active",
        /// Not in use; nothing is added to it or below it.
        Suspended = "suspended",
        /// Gone. Never left.
        Deleted = "deleted",
    }
}

state_machine! {
    /// What happens to an entity. It is created `active`.
    pub enum EntityEvent moves EntityStatus {
        /// It is taken out of use.
        Suspend = "suspend": [Active] => Suspended, "entity.suspended";
        /// It is used again.
        Activate = "activate": [Suspended] => Active, "entity.activated";
        /// It is deleted.
        Delete = "delete": [Active, Suspended] => Deleted, "entity.deleted";
    }
}

/// A tenant or sub-tenant of a platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Entity {
    /// The entity's id; never changes.
    pub id: EntityId,
    /// The platform it belongs to; never changes.
    pub platform_id: PlatformId,
    /// The entity above it; never changes, so that there can be no cycle.
    pub parent_id: Option<EntityId>,
    /// Its level in the tree, 1 at the top.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub depth: i64,
    /// What kind it is.
    #[serde(rename = "type")]
    pub entity_type: EntityType,
    /// What people call it.
    pub name: Name,
    /// Its name in addresses; no two siblings that are not deleted share one. Never changes.
    pub slug: Slug,
    /// Where it stands.
    pub status: EntityStatus,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it was deleted.
    pub deleted_at: Option<Timestamp>,
}

record! {
    Entity as "entity" by id, asked EntityQuery;
    of platform_id;
    audited, touched updated_at;
}

/// Questions about the entities of a platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntityQuery {
    /// Those a list shows, newest first.
    Listed(EntityFilter),
    /// The children of an entity that are not deleted, newest first.
    ChildrenOf(EntityId),
    /// The tenants that are not deleted, oldest first: the first one is the platform's own.
    Tenants,
}

/// Which entities a list shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntityFilter {
    /// Of this type alone.
    #[serde(rename = "type")]
    pub entity_type: Option<EntityType>,
    /// Deleted ones too; for operators.
    #[serde(default)]
    pub include_deleted: bool,
}

/// Creates an entity.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateEntity {
    /// What people call it.
    pub name: Name,
    /// Its name in addresses.
    pub slug: Slug,
    /// What kind it is.
    #[serde(rename = "type")]
    pub entity_type: EntityType,
    /// The entity above it; required for a subtenant, none for a tenant.
    pub parent_id: Option<EntityId>,
}

update_command! {
    /// Changes an entity.
    pub struct UpdateEntity for Entity {
        set {
            /// What people call it.
            name: Name,
        }
        also {
            /// Where it stands.
            status: Option<EntityStatus>,
        }
    }
}

/// What a deletion takes with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteEntity {
    /// Delete what lives below it as well; for operators.
    #[serde(default)]
    pub cascade: bool,
    /// Only tell what would go.
    #[serde(default)]
    pub dry_run: bool,
}
