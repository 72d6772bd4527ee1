//! Entities: the tenants and sub-tenants of a platform (interface: "Entity").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{
    Code, EntityId, Error, IllegalMove, Machine, Name, PlatformId, Slug, Timestamp, record,
    state_machine, text_enum, update_command,
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

/// How many levels a tree has at most.
pub const MAX_DEPTH: i64 = 16;

/// Why an entity cannot be where it is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementError {
    /// A tenant stands at the top.
    TenantWithParent,
    /// A sub-tenant stands below something.
    SubtenantWithoutParent,
    /// There is no such parent on this platform.
    NoSuchParent,
    /// The tree would get too deep.
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

/// The level of a new entity of this type below this parent.
///
/// # Errors
/// [`PlacementError`] says which rule is broken.
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
    /// A new entity of the platform.
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

    /// The entity after an event.
    ///
    /// # Errors
    /// [`IllegalMove`] when it cannot happen to it.
    pub fn after(mut self, event: EntityEvent, now: Timestamp) -> Result<Self, IllegalMove> {
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
        fn whatever_is_added_a_tree_has_sixteen_levels_at_most_and_children_are_one_below(
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
        fn any_sequence_of_events_makes_only_the_moves_of_the_table(
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
    fn only_an_active_entity_of_the_same_platform_is_a_parent() {
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
