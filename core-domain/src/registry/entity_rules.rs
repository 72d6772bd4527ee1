//! The rules of the tree of entities.

use super::{Entity, EntityStatus, EntityType, StatusMove};
use crate::kernel::{Code, Error, PlatformId};

/// How many levels a tree has at most.
pub const MAX_DEPTH: i64 = 16;

/// All moves of an entity. It is made `active`.
pub const ENTITY_MOVES: &[StatusMove<EntityStatus>] = &[
    StatusMove {
        from: &[EntityStatus::Active],
        to: EntityStatus::Suspended,
    },
    StatusMove {
        from: &[EntityStatus::Suspended],
        to: EntityStatus::Active,
    },
    StatusMove {
        from: &[EntityStatus::Active, EntityStatus::Suspended],
        to: EntityStatus::Deleted,
    },
];

/// Why an entity cannot be where it is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// A tenant stands at the top.
    TenantWithParent,
    /// A sub-tenant stands below something.
    SubtenantWithoutParent,
    /// There is no such parent on this platform.
    NoSuchParent,
    /// The tree would get too deep.
    TooDeep,
}

impl From<Misplaced> for Error {
    fn from(misplaced: Misplaced) -> Self {
        match misplaced {
            Misplaced::TenantWithParent => {
                Self::invalid("parentId", "not_allowed", "must be absent for a tenant")
            }
            Misplaced::SubtenantWithoutParent => {
                Self::invalid("parentId", "required", "is required for a subtenant")
            }
            Misplaced::NoSuchParent => Self::NotFound("parent entity"),
            Misplaced::TooDeep => Self::refused(
                Code::Conflict,
                format!("A tree of entities has at most {MAX_DEPTH} levels."),
            ),
        }
    }
}

/// The level of a new entity of this type below this parent.
///
/// # Errors
/// [`Misplaced`] says which rule is broken.
pub fn place(
    platform: &PlatformId,
    entity_type: EntityType,
    parent: Option<&Entity>,
) -> Result<i64, Misplaced> {
    let parent = match (entity_type, parent) {
        (EntityType::Tenant, None) => return Ok(1),
        (EntityType::Tenant, Some(_)) => return Err(Misplaced::TenantWithParent),
        (EntityType::Subtenant, None) => return Err(Misplaced::SubtenantWithoutParent),
        (EntityType::Subtenant, Some(parent)) => parent,
    };
    if parent.platform_id != *platform || parent.status == EntityStatus::Deleted {
        return Err(Misplaced::NoSuchParent);
    }
    if parent.depth >= MAX_DEPTH {
        return Err(Misplaced::TooDeep);
    }
    Ok(parent.depth + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::{EntityId, Name, Slug, Timestamp};
    use crate::registry::allowed;

    fn entity(number: usize, parent: Option<&Entity>, depth: i64) -> Entity {
        Entity {
            id: EntityId::parse(&format!("e{number}")).unwrap(),
            platform_id: PlatformId::parse("p1").unwrap(),
            parent_id: parent.map(|p| p.id.clone()),
            depth,
            entity_type: if depth == 1 {
                EntityType::Tenant
            } else {
                EntityType::Subtenant
            },
            name: Name::parse("E").unwrap(),
            slug: Slug::parse("e").unwrap(),
            status: EntityStatus::Active,
            created_at: Timestamp::EPOCH,
            updated_at: Timestamp::EPOCH,
            deleted_at: None,
        }
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
                let placed = place(&platform, kind, parent.as_ref());
                let full = parent.as_ref().is_some_and(|p| p.depth == MAX_DEPTH);
                prop_assert_eq!(placed.is_err(), full);
                let Ok(depth) = placed else { continue };
                prop_assert_eq!(depth, parent.as_ref().map_or(1, |p| p.depth + 1));
                prop_assert!(depth <= MAX_DEPTH);
                tree.push(entity(tree.len(), parent.as_ref(), depth));
            }
        }

        #[test]
        fn a_deleted_entity_stays_deleted(
            wanted in prop::collection::vec(prop::sample::select(EntityStatus::ALL), 1..20),
        ) {
            let mut status = EntityStatus::Active;
            for to in wanted {
                let goes = allowed(ENTITY_MOVES, status, to, EntityStatus::as_str).is_ok();
                prop_assert_eq!(goes, status != EntityStatus::Deleted || to == EntityStatus::Deleted);
                if goes {
                    status = to;
                }
            }
        }
    }

    #[test]
    fn only_a_living_entity_of_the_same_platform_is_a_parent() {
        let (here, there) = (
            PlatformId::parse("p1").unwrap(),
            PlatformId::parse("p2").unwrap(),
        );
        let parent = entity(1, None, 1);
        let deleted = Entity {
            status: EntityStatus::Deleted,
            ..parent.clone()
        };
        let below = |platform, parent| place(platform, EntityType::Subtenant, parent);
        assert_eq!(below(&here, Some(&parent)), Ok(2));
        assert_eq!(below(&there, Some(&parent)), Err(Misplaced::NoSuchParent));
        assert_eq!(below(&here, Some(&deleted)), Err(Misplaced::NoSuchParent));
        assert_eq!(below(&here, None), Err(Misplaced::SubtenantWithoutParent));
        let tenant = place(&here, EntityType::Tenant, Some(&parent));
        assert_eq!(tenant, Err(Misplaced::TenantWithParent));
    }
}
