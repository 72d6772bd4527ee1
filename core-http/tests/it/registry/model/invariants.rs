//! The invariants of the registry's records, which hold after any sequence of operations.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Debug;
use std::hash::Hash;

use core_domain::kernel::{Audited, JsonText, Record, Stored};
use core_domain::registry::{
    CustomDomain, CustomDomainStatus, DnsRecord, DnsRecordStatus, Entity, EntityStatus, EntityType,
    MAX_DEPTH, Platform, PlatformStatus, ResourceStatus,
};

use super::state::State;

/// Asserts all invariants.
#[track_caller]
pub(super) fn assert_invariants(state: &State) {
    let platforms = by_key(&state.platforms);
    let entities = by_key(&state.entities);
    assert_names_unique(state);
    assert_trees_valid(state, &platforms, &entities);
    assert_no_orphans(state, &platforms, &entities);
    assert_references_valid(state, &entities);
    versions_have_no_gap(state);
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

fn assert_names_unique(state: &State) {
    let not_deleted = state.platforms.iter();
    let not_deleted = not_deleted.filter(|p| p.status != PlatformStatus::Deleted);
    unique("platforms", not_deleted.map(|p| &p.slug));
    let not_deleted = state.entities.iter();
    let not_deleted = not_deleted.filter(|e| e.status != EntityStatus::Deleted);
    unique(
        "siblings",
        not_deleted.map(|e| (&e.platform_id, &e.parent_id, &e.slug)),
    );
    unique(
        "hostnames",
        active_dns(state).map(|record| &record.hostname),
    );
    unique(
        "records of a platform",
        not_deleted_dns(state).map(|record| (&record.platform_id, &record.hostname)),
    );
    unique(
        "domains of a platform",
        not_deleted_domains(state).map(|domain| (&domain.platform_id, &domain.hostname)),
    );
    let proved = not_deleted_domains(state).filter(|d| d.status == CustomDomainStatus::Active);
    let proved: Vec<_> = proved.map(|d| (&d.hostname, &d.platform_id)).collect();
    unique(
        "active domains",
        proved.iter().map(|(hostname, _)| hostname),
    );
    let led = active_dns(state).map(|record| (&record.hostname, &record.platform_id));
    let holders: HashSet<_> = led.chain(proved).collect();
    unique("platforms", holders.iter().map(|(hostname, _)| hostname));
    let defaults = state.stacks.iter().filter(|stack| stack.is_default);
    unique("default stacks", defaults.map(|stack| &stack.tenant_id));
    let stacks = state.stacks.iter();
    unique(
        "stacks",
        stacks.map(|stack| (&stack.tenant_id, &stack.name)),
    );
    let features = state.features.iter();
    unique(
        "features",
        features.map(|f| (&f.entity_id, f.environment, &f.feature_id)),
    );
    let deployments = state.deployments.iter();
    unique(
        "deployments",
        deployments.map(|d| (&d.platform_id, &d.idempotency_key)),
    );
    let not_deleted = state.resources.iter();
    let not_deleted = not_deleted.filter(|r| r.status != ResourceStatus::Deleted);
    unique(
        "resources",
        not_deleted.map(|r| (r.cf_account_id.clone(), r.resource_type, &r.cf_name)),
    );
}

fn assert_trees_valid(
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
        // The depth grows by one at each level, so there is no cycle.
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

fn assert_no_orphans(
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

fn active_dns(state: &State) -> impl Iterator<Item = &Stored<DnsRecord>> {
    let records = state.dns.iter();
    records.filter(|record| record.status == DnsRecordStatus::Active)
}

fn not_deleted_dns(state: &State) -> impl Iterator<Item = &Stored<DnsRecord>> {
    let records = state.dns.iter();
    records.filter(|record| record.status != DnsRecordStatus::Deleted)
}

fn not_deleted_domains(state: &State) -> impl Iterator<Item = &Stored<CustomDomain>> {
    let domains = state.domains.iter();
    domains.filter(|domain| domain.status != CustomDomainStatus::Deleted)
}

/// Asserts that every reference points to an existing record of the same platform.
fn assert_references_valid(state: &State, entities: &HashMap<&str, &Entity>) {
    let resources = by_key(&state.resources);
    let (stacks, records) = (by_key(&state.stacks), by_key(&state.dns));
    for record in not_deleted_dns(state) {
        let resource = resources[record.resource_id.as_str()];
        assert_eq!(resource.platform_id, record.platform_id);
        assert_ne!(resource.status, ResourceStatus::Deleted, "{record:?}");
        assert_eq!(
            stacks[record.stack_id.as_str()].platform_id,
            record.platform_id
        );
    }
    for domain in not_deleted_domains(state) {
        let record = records[domain.dns_record_id.as_str()];
        assert_eq!(record.platform_id, domain.platform_id);
        assert_ne!(record.status, DnsRecordStatus::Deleted, "{domain:?}");
        let active = domain.status == CustomDomainStatus::Active;
        assert_eq!(domain.verified_at.is_some(), active, "{domain:?}");
    }
    for stack in &state.stacks {
        let tenant = entities[stack.tenant_id.as_str()];
        assert_eq!(tenant.platform_id, stack.platform_id);
        assert_ne!(tenant.status, EntityStatus::Deleted, "{stack:?}");
    }
    for feature in state.features.iter().filter(|f| f.status.is_in_use()) {
        let entity = entities[feature.entity_id.as_str()];
        assert_eq!(entity.platform_id, feature.platform_id);
        assert_ne!(entity.status, EntityStatus::Deleted, "{feature:?}");
    }
}

/// Asserts that the versions of a key are numbered from 1 without gaps, and that the newest has the current value.
fn versions_have_no_gap(state: &State) {
    for config in &state.configs {
        let versions = state.config_versions.iter().filter(|version| {
            (&version.platform_id, version.config_key) == (&config.platform_id, config.config_key)
        });
        let newest_first: Vec<_> = versions.collect();
        let numbers: Vec<i64> = newest_first.iter().map(|version| version.version).collect();
        let wanted: Vec<i64> = (1..=config.version).rev().collect();
        assert_eq!(numbers, wanted);
        assert_eq!(newest_first[0].config_value, config.config_value);
    }
}

/// Asserts that a deployment that has ended never changes.
pub(super) fn assert_ended_deployments_unchanged(before: &State, after: &State) {
    let deployments = by_key(&after.deployments);
    for ended in before.deployments.iter().filter(|d| d.status.is_terminal()) {
        if let Some(now) = deployments.get(ended.id.as_str()) {
            assert_eq!(*now, &**ended);
        }
    }
}

/// Asserts that a platform has left every status that it entered, except its current one. The check ignores the order,
/// because records of the same millisecond have none.
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

/// Asserts that the version of a record is the number of its audit entries: one for its creation and one for each
/// change.
fn every_change_is_in_the_audit(state: &State) {
    let mut changes: BTreeMap<&str, i64> = BTreeMap::new();
    for entry in &state.audit {
        // An entry about an event that changed no record has no snapshot of a record.
        let after = entry.after.as_ref().map(JsonText::value);
        let created = entry.action.ends_with(".created")
            || after.is_some_and(|after| after["id"] == *entry.entity_id);
        if created || entry.before.is_some() {
            *changes.entry(&entry.entity_id).or_default() += 1;
        }
    }
    let audited = |key: &str, version: i64| {
        let known = changes.get(key).copied().unwrap_or_default();
        assert_eq!(known, version, "{key} is at version {version}");
    };
    macro_rules! all_audited {
        ($($rows:ident),+) => {
            $(state.$rows.iter().for_each(|row| audited(row.key(), row.version()));)+
        };
    }
    all_audited!(
        platforms, entities, resources, secrets, features, builds, stacks, dns, domains
    );
    all_audited!(configs, deployments);
}
