//! Entities: the tenants and subtenants of a platform (interface: "Entity").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{
    Code, EntityId, Error, IllegalTransition, Machine, Name, PlatformId, Slug, Timestamp, record,
    state_machine, text_enum, update_command,
};

text_enum! {
    /// The type of an entity.
    pub enum EntityType {
        /// An entity at the top of a tree.
        Tenant = "tenant",
        /// An entity below another entity.
        Subtenant = "subtenant",
    }
}

text_enum! {
    /// The status of an entity.
    pub enum EntityStatus {
        /// The entity is in use.
        Active = "active",
        /// The entity is not in use. Nothing can be added to it or below it.
        Suspended = "suspended",
        /// The entity is deleted. Final status.
        Deleted = "deleted",
    }
}

state_machine! {
    /// Events of an entity, which is created `active`.
    pub enum EntityEvent moves EntityStatus {
        /// The entity is suspended.
        Suspend = "suspend": [Active] => Suspended, "entity.suspended";
        /// The suspended entity is used again.
        Activate = "activate": [Suspended] => Active, "entity.activated";
        /// The entity is deleted.
        Delete = "delete": [Active, Suspended] => Deleted, "entity.deleted";
    }
}

/// A tenant or subtenant of a platform.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Entity {
    /// The id of the entity. It never changes.
    pub id: EntityId,
    /// The platform that the entity belongs to. It never changes.
    pub platform_id: PlatformId,
    /// The parent entity; `null` for a tenant. It never changes, so that trees have no cycles.
    pub parent_id: Option<EntityId>,
    /// The level in the tree, starting with 1 for a tenant.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub depth: i64,
    /// The type of the entity.
    #[serde(rename = "type")]
    pub entity_type: EntityType,
    /// The display name of the entity.
    pub name: Name,
    /// The name of the entity in addresses. It never changes, and is unique among siblings that are not deleted.
    pub slug: Slug,
    /// The status of the entity.
    pub status: EntityStatus,
    /// When the entity was created.
    pub created_at: Timestamp,
    /// When the entity was last changed.
    pub updated_at: Timestamp,
    /// When the entity was deleted. `null` if it is not deleted.
    pub deleted_at: Option<Timestamp>,
}

record! {
    Entity as "entity" by id, asked EntityQuery;
    of platform_id;
    audited, touched updated_at;
}

/// Queries for the entities of a platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntityQuery {
    /// The entities that match a filter, newest first.
    Listed(EntityFilter),
    /// The children of an entity that are not deleted, newest first.
    ChildrenOf(EntityId),
    /// The tenants that are not deleted, oldest first. The first one is the platform's own tenant.
    Tenants,
}

/// Query parameters of the entity list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntityFilter {
    /// Returns only entities of this type.
    #[serde(rename = "type")]
    pub entity_type: Option<EntityType>,
    /// Also returns deleted entities. Effective only for operators. Default: `false`.
    #[serde(default)]
    pub include_deleted: bool,
}

/// Request body that creates an entity.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateEntity {
    /// The display name of the entity.
    pub name: Name,
    /// The name of the entity in addresses. It never changes.
    pub slug: Slug,
    /// The type of the entity.
    #[serde(rename = "type")]
    pub entity_type: EntityType,
    /// The parent entity. Required for a subtenant; must be absent or `null` for a tenant.
    pub parent_id: Option<EntityId>,
}

update_command! {
    /// Request body that updates an entity. Omitted fields stay unchanged.
    pub struct UpdateEntity for Entity {
        set {
            /// The display name of the entity.
            name: Name,
        }
        also {
            /// The new status of the entity.
            status: Option<EntityStatus>,
        }
    }
}

/// Query parameters of the deletion of an entity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteEntity {
    /// Also deletes everything below the entity. Allowed only for operators. Default: `false`.
    #[serde(default)]
    pub cascade: bool,
    /// Returns what would be deleted without deleting it. Default: `false`.
    #[serde(default)]
    pub dry_run: bool,
}

/// Maximum number of levels in a tree of entities.
pub const MAX_DEPTH: i64 = 16;

/// The reasons why an entity cannot be placed in a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementError {
    /// A tenant cannot have a parent.
    TenantWithParent,
    /// A subtenant requires a parent.
    SubtenantWithoutParent,
    /// The parent does not exist on this platform, or is deleted.
    NoSuchParent,
    /// The tree would exceed [`MAX_DEPTH`] levels.
    TooDeep,
}

impl From<PlacementError> for Error {
    fn from(error: PlacementError) -> Self {
        match error {
            PlacementError::TenantWithParent => {
                Self::invalid("parentId", "not_allowed", "must be absent for a tenant")
            }
            PlacementError::SubtenantWithoutParent => {
                Self::invalid("parentId", "required", "is required for a subtenant")
            }
            PlacementError::NoSuchParent => Self::NotFound("parent entity"),
            PlacementError::TooDeep => Self::refused(
                Code::Conflict,
                format!("A tree of entities has at most {MAX_DEPTH} levels."),
            ),
        }
    }
}

/// Returns the level of a new entity of this type below this parent.
///
/// # Errors
/// [`PlacementError`] with the rule that is broken.
pub fn child_depth(
    platform: &PlatformId,
    entity_type: EntityType,
    parent: Option<&Entity>,
) -> Result<i64, PlacementError> {
    let parent = match (entity_type, parent) {
        (EntityType::Tenant, None) => return Ok(1),
        (EntityType::Tenant, Some(_)) => return Err(PlacementError::TenantWithParent),
        (EntityType::Subtenant, None) => return Err(PlacementError::SubtenantWithoutParent),
        (EntityType::Subtenant, Some(parent)) => parent,
    };
    if parent.platform_id != *platform || parent.status == EntityStatus::Deleted {
        return Err(PlacementError::NoSuchParent);
    }
    if parent.depth >= MAX_DEPTH {
        return Err(PlacementError::TooDeep);
    }
    Ok(parent.depth + 1)
}

impl Entity {
    /// Creates an active entity of the platform.
    #[must_use]
    pub fn create(
        id: EntityId,
        platform: &PlatformId,
        depth: i64,
        command: CreateEntity,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            platform_id: platform.clone(),
            parent_id: command.parent_id,
            depth,
            entity_type: command.entity_type,
            name: command.name,
            slug: command.slug,
            status: EntityStatus::Active,
            created_at: now,
            updated_at: now,
            deleted_at: None,
        }
    }

    /// Applies an event. Sets `deleted_at` when the entity is deleted.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the event is not allowed in the current status.
    pub fn after(mut self, event: EntityEvent, now: Timestamp) -> Result<Self, IllegalTransition> {
        self.status = event.next(self.status)?;
        if self.status == EntityStatus::Deleted {
            self.deleted_at = Some(now);
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::kernel::{Name, Slug, assert_only_table_moves};

    use super::*;

    fn entity(number: usize, parent: Option<&Entity>, depth: i64) -> Entity {
        let command = CreateEntity {
            name: Name::parse("E").unwrap(),
            slug: Slug::parse("e").unwrap(),
            entity_type: if depth == 1 {
                EntityType::Tenant
            } else {
                EntityType::Subtenant
            },
            parent_id: parent.map(|p| p.id.clone()),
        };
        let id = EntityId::parse(&format!("e{number}")).unwrap();
        let platform = PlatformId::parse("p1").unwrap();
        Entity::create(id, &platform, depth, command, Timestamp::EPOCH)
    }

    proptest! {
        #[test]
        fn a_tree_has_at_most_sixteen_levels_and_children_are_one_level_below_their_parent(
            parents in prop::collection::vec(prop::option::of(0_usize..60), 1..80),
        ) {
            let platform = PlatformId::parse("p1").unwrap();
            let mut tree: Vec<Entity> = Vec::new();
            for wanted in parents {
                let parent = wanted.and_then(|at| tree.get(at)).cloned();
                let kind = if parent.is_some() { EntityType::Subtenant } else { EntityType::Tenant };
                let placed = child_depth(&platform, kind, parent.as_ref());
                let full = parent.as_ref().is_some_and(|p| p.depth == MAX_DEPTH);
                prop_assert_eq!(placed.is_err(), full);
                let Ok(depth) = placed else { continue };
                prop_assert_eq!(depth, parent.as_ref().map_or(1, |p| p.depth + 1));
                prop_assert!(depth <= MAX_DEPTH);
                tree.push(entity(tree.len(), parent.as_ref(), depth));
            }
        }

        #[test]
        fn random_events_follow_the_transition_table(
            events in prop::collection::vec(prop::sample::select(EntityEvent::ALL), 1..20),
        ) {
            assert_only_table_moves(EntityStatus::Active, &events);
            let mut entity = entity(1, None, 1);
            for event in events {
                entity = entity.clone().after(event, Timestamp::EPOCH).unwrap_or(entity);
                prop_assert_eq!(entity.deleted_at.is_some(), entity.status == EntityStatus::Deleted);
            }
        }
    }

    #[test]
    fn a_parent_is_not_deleted_and_belongs_to_the_same_platform() {
        let (here, there) = (
            PlatformId::parse("p1").unwrap(),
            PlatformId::parse("p2").unwrap(),
        );
        let parent = entity(1, None, 1);
        let deleted = Entity {
            status: EntityStatus::Deleted,
            ..parent.clone()
        };
        let below = |platform, parent| child_depth(platform, EntityType::Subtenant, parent);
        assert_eq!(below(&here, Some(&parent)), Ok(2));
        assert_eq!(
            below(&there, Some(&parent)),
            Err(PlacementError::NoSuchParent)
        );
        assert_eq!(
            below(&here, Some(&deleted)),
            Err(PlacementError::NoSuchParent)
        );
        assert_eq!(
            below(&here, None),
            Err(PlacementError::SubtenantWithoutParent)
        );
        let tenant = child_depth(&here, EntityType::Tenant, Some(&parent));
        assert_eq!(tenant, Err(PlacementError::TenantWithParent));
    }
}
