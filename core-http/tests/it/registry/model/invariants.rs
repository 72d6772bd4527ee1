//! What holds of everything the registry keeps, whatever happened and in whatever order.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Debug;
use std::hash::Hash;

use core_domain::kernel::{Audited, Stored};
use core_domain::registry::{
    Entity, EntityStatus, EntityType, MAX_DEPTH, Platform, PlatformStatus, ResourceStatus,
};

use super::state::State;

/// Checks all of them.
#[track_caller]
pub(super) fn invariants_hold(state: &State) {
    let platforms = by_key(&state.platforms);
    let entities = by_key(&state.entities);
    names_are_unique(state);
    trees_are_whole(state, &platforms, &entities);
    nothing_is_orphaned(state, &platforms, &entities);
    lifecycles_have_no_gap(state);
    every_change_is_in_the_audit(state);
}

fn by_key<R: Audited>(rows: &[Stored<R>]) -> HashMap<&str, &R> {
    rows.iter().map(|row| (row.key(), &**row)).collect()
}

#[track_caller]
fn unique<K: Hash + Eq + Debug>(what: &str, keys: impl Iterator<Item = K>) {
    let mut known = HashSet::new();
    for key in keys {
        let shown = format!("{key:?}");
        assert!(known.insert(key), "two {what} have {shown}");
    }
}

fn names_are_unique(state: &State) {
    let living = state.platforms.iter();
    let living = living.filter(|p| p.status != PlatformStatus::Deleted);
    unique("platforms", living.map(|p| &p.slug));
    let living = state.entities.iter();
    let living = living.filter(|e| e.status != EntityStatus::Deleted);
    unique(
        "siblings",
        living.map(|e| (&e.platform_id, &e.parent_id, &e.slug)),
    );
    let living = state.resources.iter();
    let living = living.filter(|r| r.status != ResourceStatus::Deleted);
    unique(
        "resources",
        living.map(|r| (r.cf_account_id.clone(), r.resource_type, &r.cf_name)),
    );
}

fn trees_are_whole(
    state: &State,
    platforms: &HashMap<&str, &Platform>,
    entities: &HashMap<&str, &Entity>,
) {
    for entity in &state.entities {
        assert!(platforms.contains_key(entity.platform_id.as_str()));
        assert_eq!(
            entity.deleted_at.is_some(),
            entity.status == EntityStatus::Deleted
        );
        let Some(parent) = &entity.parent_id else {
            assert_eq!((entity.depth, entity.entity_type), (1, EntityType::Tenant));
            continue;
        };
        // One less deep each time: there is no way back to where one was.
        let parent = entities[parent.as_str()];
        assert_eq!(parent.platform_id, entity.platform_id);
        assert_eq!(parent.depth + 1, entity.depth);
        assert!(entity.depth <= MAX_DEPTH);
        let orphaned = parent.status == EntityStatus::Deleted;
        assert!(
            !orphaned || entity.status == EntityStatus::Deleted,
            "{entity:?}"
        );
    }
}

fn nothing_is_orphaned(
    state: &State,
    platforms: &HashMap<&str, &Platform>,
    entities: &HashMap<&str, &Entity>,
) {
    for resource in &state.resources {
        assert!(platforms.contains_key(resource.platform_id.as_str()));
        let entity = entities[resource.entity_id.as_str()];
        assert_eq!(entity.platform_id, resource.platform_id);
        let orphaned = entity.status == EntityStatus::Deleted;
        let deleted = resource.status == ResourceStatus::Deleted;
        assert!(!orphaned || deleted, "{resource:?}");
        assert_eq!(resource.deleted_at.is_some(), deleted);
    }
}

/// What a platform came to, it left again, but for where it stands. Records of one millisecond have no order.
fn lifecycles_have_no_gap(state: &State) {
    for platform in &state.platforms {
        let records = state.lifecycle.iter();
        let mut stands: BTreeMap<&str, i32> = BTreeMap::new();
        for record in records.filter(|r| r.platform_id == platform.id) {
            *stands.entry(record.to_status.as_str()).or_default() += 1;
            if let Some(from) = record.from_status {
                *stands.entry(from.as_str()).or_default() -= 1;
            }
        }
        stands.retain(|_, times| *times != 0);
        let alone = BTreeMap::from([(platform.status.as_str(), 1)]);
        assert_eq!(stands, alone, "{}", platform.id);
    }
}

/// A record's version is the number of its entries: one for its creation and one for each change.
fn every_change_is_in_the_audit(state: &State) {
    let mut changes: BTreeMap<&str, i64> = BTreeMap::new();
    for entry in &state.audit {
        let created = entry.before.is_none() && entry.action.ends_with(".created");
        if created || entry.before.is_some() {
            *changes.entry(&entry.entity_id).or_default() += 1;
        }
    }
    let audited = |key: &str, version: i64| {
        let known = changes.get(key).copied().unwrap_or_default();
        assert_eq!(known, version, "{key} is at version {version}");
    };
    state
        .platforms
        .iter()
        .for_each(|r| audited(r.id.as_str(), r.version()));
    state
        .entities
        .iter()
        .for_each(|r| audited(r.id.as_str(), r.version()));
    state
        .resources
        .iter()
        .for_each(|r| audited(r.id.as_str(), r.version()));
}
