//! Entities: the tenants and sub-tenants of a platform (interface: "Entity").

use crate::kernel::{EntityId, Name, PlatformId, Slug, Timestamp, text_enum};
use crate::port::Record;

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

/// A tenant or sub-tenant of a platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entity {
    /// The entity's id; never changes.
    pub id: EntityId,
    /// The platform it belongs to; never changes.
    pub platform_id: PlatformId,
    /// The entity above it; never changes, so that there can be no cycle.
    pub parent_id: Option<EntityId>,
    /// Its level in the tree, 1 at the top; not shown.
    pub depth: i64,
    /// What kind it is.
    pub entity_type: EntityType,
    /// What people call it.
    pub name: Name,
    /// Its name in addresses; no two siblings that are not deleted share one. Never changes.
    pub slug: Slug,
    /// Where it stands.
    pub status: EntityStatus,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// When it was deleted.
    pub deleted_at: Option<Timestamp>,
}

impl Record for Entity {
    type Query = EntityQuery;
    const KIND: &'static str = "entity";

    fn key(&self) -> &str {
        self.id.as_str()
    }
}

/// Questions about entities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntityQuery {
    /// Those of a platform, newest first.
    OfPlatform {
        /// The platform.
        platform_id: PlatformId,
        /// Of this type alone.
        entity_type: Option<EntityType>,
        /// Deleted ones too.
        deleted: bool,
    },
    /// The children of an entity that are not deleted, newest first.
    ChildrenOf(EntityId),
    /// The tenants of a platform that are not deleted, oldest first: the first one is the platform's own.
    TenantsOf(PlatformId),
}
