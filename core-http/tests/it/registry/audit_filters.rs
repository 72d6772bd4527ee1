//! Every combination of the filters of the audit log, compared with a model while entries are added.

use core_domain::shared::AuditEntry;
use serde_json::Value;

use crate::world::{World, audit_entry, on_every_store, operator, platform_path};

on_every_store! {
    every_filter_combination_returns_the_matching_entries_while_entries_are_added,
    every_filter_combination_of_a_platform_returns_the_matching_entries,
}

const ACTIONS: [&str; 4] = ["thing.made", "thing.made.twice", "thing", "think.made"];

/// Returns 72 entries of two platforms and of none, with independently varying actors, actions and entities.
fn entries(first: i64) -> Vec<AuditEntry> {
    (first..first + 72)
        .map(|n| {
            let platform = [Some("p-1"), None, Some("p-2")][(n / 2 % 3) as usize];
            let made = audit_entry(n, platform, ACTIONS[(n % 4) as usize]);
            AuditEntry {
                actor_id: ["olga", "adam"][(n / 5 % 2) as usize].to_owned(),
                // The id of an entity may be equal to an entity type.
                entity_id: ["thing-1", "think", "thing"][(n / 7 % 3) as usize].to_owned(),
                ..made
            }
        })
        .collect()
}

/// Returns every combination of at most one item of each list.
fn combinations(
    lists: &[&[(&'static str, &'static str)]],
) -> Vec<Vec<(&'static str, &'static str)>> {
    lists.iter().fold(vec![Vec::new()], |all, list| {
        let with = |chosen: &Vec<_>| {
            let chosen = chosen.clone();
            let more = list.iter().map(move |one| [&chosen[..], &[*one]].concat());
            more.collect::<Vec<_>>()
        };
        let more: Vec<_> = all.iter().flat_map(with).collect();
        [all, more].concat()
    })
}

fn matches(entry: &AuditEntry, (name, value): (&str, &str)) -> bool {
    let segment = entry.action.split('.').next();
    let created = entry.created_at.to_rfc3339();
    match name {
        "platformId" => entry
            .platform_id
            .as_ref()
            .is_some_and(|id| id.as_str() == value),
        "actorId" => entry.actor_id == value,
        "eventType" => entry.action == value || segment == Some(value),
        "action" => entry.action == value,
        "entity" => entry.entity_type == value || entry.entity_id == value,
        "from" => created.as_str() >= value,
        "to" => created.as_str() < value,
        _ => false,
    }
}

/// Returns the ids of the matching entries, newest first.
fn matching_ids<'e>(entries: &'e [AuditEntry], chosen: &[(&str, &str)]) -> Vec<&'e str> {
    let wanted = entries
        .iter()
        .filter(|e| chosen.iter().all(|one| matches(e, *one)));
    let mut wanted: Vec<_> = wanted.map(|e| (e.created_at, e.id.as_str())).collect();
    wanted.sort_unstable();
    wanted.into_iter().rev().map(|(_, id)| id).collect()
}

fn query(chosen: &[(&str, &str)]) -> String {
    let parts: Vec<_> = chosen
        .iter()
        .map(|(name, value)| format!("&{name}={value}"))
        .collect();
    parts.concat()
}

/// Reads a list in small pages and returns the ids and the first page's total. Calls `between` after the first page.
async fn read_all_pages(
    world: &World,
    path: &str,
    between: impl AsyncFn(),
) -> (Vec<String>, Option<u64>) {
    let (mut ids, mut cursor, mut total) = (Vec::new(), String::new(), None);
    loop {
        let page = world
            .registry
            .get(&operator(), &format!("{path}{cursor}"))
            .await
            .expect(200);
        ids.extend(page.each("id").into_iter().map(str::to_owned));
        if total.is_none() {
            total = page.total();
            between().await;
        }
        match &page.json["pagination"]["nextCursor"] {
            Value::String(next) => cursor = format!("&cursor={next}"),
            _ => return (ids, total),
        }
    }
}

async fn every_filter_combination_returns_the_matching_entries_while_entries_are_added(
    world: World,
) {
    let mut there = entries(0);
    world.write_entries(&there).await;
    let added = std::sync::atomic::AtomicI64::new(72);
    for chosen in combinations(&[
        &[("platformId", "p-1")],
        &[("actorId", "olga")],
        &[
            ("eventType", "thing"),
            ("eventType", "thing.made"),
            ("eventType", "thi"),
        ],
        &[("from", "2027-01-15T08:00:03.000Z")],
        &[("to", "2027-01-15T08:00:20.000Z")],
    ]) {
        let before = there.clone();
        let between = async || {
            // An entry that is added during the walk must not appear in it.
            let n = added.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            world
                .write_entries(&[audit_entry(n, None, "other.made")])
                .await;
        };
        let path = format!("/api/v1/audit?limit=7{}", query(&chosen));
        let (found, total) = read_all_pages(&world, &path, between).await;
        let wanted = matching_ids(&before, &chosen);
        assert_eq!(found, wanted, "{chosen:?}");
        assert_eq!(total, Some(wanted.len() as u64), "{chosen:?}");
        let n = added.load(std::sync::atomic::Ordering::Relaxed) - 1;
        there.push(audit_entry(n, None, "other.made"));
    }
}

async fn every_filter_combination_of_a_platform_returns_the_matching_entries(world: World) {
    let platform = world.create_platform("engines").await;
    let mut there = entries(0);
    for entry in &mut there {
        entry.platform_id = core_domain::kernel::PlatformId::parse(&platform);
    }
    let list = world.get_record(&platform_path(&platform, "/audit")).await;
    let creation = list.each("id")[0].to_owned();
    world.write_entries(&there).await;
    for chosen in combinations(&[
        &[
            ("action", "thing.made"),
            ("action", "thing"),
            ("action", "nothing"),
        ],
        &[
            ("entity", "thing"),
            ("entity", "think"),
            ("entity", "thing-1"),
            ("entity", "no"),
        ],
    ]) {
        let path = platform_path(&platform, &format!("/audit?limit=7{}", query(&chosen)));
        let (mut found, total) = read_all_pages(&world, &path, async || {}).await;
        // The list also contains the entry of the platform's creation.
        found.retain(|id| id != &creation);
        let others = u64::from(chosen.is_empty());
        let wanted = matching_ids(&there, &chosen);
        assert_eq!(found, wanted, "{chosen:?}");
        assert_eq!(total, Some(wanted.len() as u64 + others), "{chosen:?}");
    }
}
