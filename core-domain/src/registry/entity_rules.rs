//! The rules of the tree of entities.

use super::{CreateEntity, Entity, EntityEvent, EntityStatus, EntityType};
use crate::kernel::{Code, EntityId, Error, IllegalMove, Machine, PlatformId, Timestamp};

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

    use super::*;
    use crate::kernel::{Name, Slug, assert_only_table_moves};

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
