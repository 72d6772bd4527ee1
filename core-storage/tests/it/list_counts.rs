//! Tests of the remembered counts of large lists: totals are exact, and few rows are counted again.

use std::sync::Arc;
use std::time::Duration;

use core_domain::access::RecordKey;
use core_domain::kernel::{
    AuditId, Clock, JsonText, ListVersion, Name, PageQuery, PlatformId, Slug, Timestamp, Total,
    first_uuid,
};
use core_domain::port::{Mode, Repository, Store, UnitOfWork, Within};
use core_domain::registry::{CreatePlatform, Platform, PlatformOwner, PlatformQuery, Tier};
use core_domain::shared::{AuditChain, AuditEntry, AuditHead, AuditQuery, AuditStream};
use core_domain::testing::{ManualClock, named_uuid};
use core_storage::fault::FaultStore;
use core_storage::{Filter, Op, RecordStore, Select, memory};
use proptest::prelude::*;
use serde_json::json;

const EVERYWHERE: Within<'static> = Within::Installation;

/// The number of rows of a large list.
const MANY: usize = 1_000;

const HOUR: Duration = Duration::from_secs(60 * 60);

/// A store on an engine on which other processes commit, and its audit log.
struct World {
    store: Arc<dyn Store>,
    calls: FaultStore,
    clock: Arc<ManualClock>,
    entries: usize,
}

impl World {
    fn new() -> Self {
        let start = Timestamp::parse_rfc3339("2027-01-01T00:00:00Z").unwrap();
        let clock = Arc::new(ManualClock::at(start));
        let calls = FaultStore::new(memory::rows(clock.clone())).without_commit_numbers();
        let store = RecordStore::new(Arc::new(calls.clone()), [7; 32]);
        Self {
            store: Arc::new(store),
            calls,
            clock,
            entries: 0,
        }
    }

    /// Returns new entries with this action that were created this long ago.
    fn new_entries(&mut self, count: usize, action: &str, age: Duration) -> Vec<AuditEntry> {
        let created_at = self.clock.now().minus(age);
        let numbers = self.entries..self.entries + count;
        self.entries = numbers.end;
        numbers
            .map(|number| entry(number, action, created_at))
            .collect()
    }

    /// Adds entries to the list, as if they had been sealed.
    async fn add(&mut self, count: usize, action: &str, age: Duration) {
        let entries = self.new_entries(count, action, age);
        let keys: Vec<String> = entries.iter().map(|entry| entry.id.to_string()).collect();
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let mut unit = self.store.begin(Mode::Write).await.unwrap();
        let records = audit(unit.as_mut());
        records.append_many(entries).await.unwrap();
        records.promote(&keys).await.unwrap();
        count_in_feed(unit.as_mut(), count).await;
        unit.commit().await.unwrap();
    }

    /// Returns the total of the entries with this action.
    async fn total(&self, action: &str) -> u64 {
        self.total_after_removals(action, 0).await
    }

    async fn total_after_removals(&self, action: &str, removed: u64) -> u64 {
        let query = AuditQuery {
            action: Some(action.to_owned()),
            ..AuditQuery::default()
        };
        let version = ListVersion {
            added: self.entries as u64,
            removed,
        };
        let first = PageQuery {
            total: Total::AtVersion(version),
            ..PageQuery::first(1)
        };
        let mut unit = self.store.begin(Mode::Read).await.unwrap();
        let page = audit(unit.as_mut()).page(EVERYWHERE, &query, &first);
        page.await.unwrap().total
    }

    /// Returns the bounds of the counts of the audit log since the last call: `None` for a count of all matching rows.
    fn bounds(&self) -> Vec<Option<String>> {
        let counts = self.calls.take_counts().into_iter();
        let of_log = counts.filter(|count| count.table.name == "audit_entries");
        of_log.map(|count| first_counted_key(&count)).collect()
    }

    /// Adds platforms, each with an audit entry that is not sealed yet.
    async fn add_platforms(&mut self, numbers: std::ops::Range<usize>) {
        let now = self.clock.now();
        let entries = self.new_entries(numbers.len(), "platform.created", Duration::ZERO);
        let mut unit = self.store.begin(Mode::Write).await.unwrap();
        let records = unit.repositories(RecordKey::for_tests()).platforms();
        let new = numbers.map(|number| platform(number, now));
        records.append_many(new.collect()).await.unwrap();
        audit(unit.as_mut()).append_many(entries).await.unwrap();
        unit.commit().await.unwrap();
    }

    /// Seals all entries that are not sealed yet.
    async fn seal(&self) {
        let mut unit = self.store.begin(Mode::Write).await.unwrap();
        let records = audit(unit.as_mut());
        let staged = records.list_staged(u32::MAX).await.unwrap();
        let keys: Vec<&str> = staged.iter().map(|staged| staged.id.as_str()).collect();
        records.promote(&keys).await.unwrap();
        count_in_feed(unit.as_mut(), keys.len()).await;
        unit.commit().await.unwrap();
    }

    /// Returns the total of the list of platforms, and whether the platforms were counted.
    async fn platforms(&self) -> (u64, bool) {
        drop(self.calls.take_counts());
        let query = PlatformQuery::All { deleted: false };
        let mut unit = self.store.begin(Mode::Read).await.unwrap();
        let records = unit.repositories(RecordKey::for_tests()).platforms();
        let page = records.page(EVERYWHERE, &query, &PageQuery::first(1)).await;
        let mut counts = self.calls.take_counts().into_iter();
        let is_counted = counts.any(|count| count.table.name == "platforms");
        (page.unwrap().total, is_counted)
    }
}

fn audit(unit: &mut dyn UnitOfWork) -> &mut dyn Repository<AuditEntry> {
    unit.repositories(RecordKey::for_tests()).audit_entries()
}

/// Adds changes to the head of the feed, as sealing does.
async fn count_in_feed(unit: &mut dyn UnitOfWork, changes: usize) {
    let feed = AuditChain::feed();
    let heads = unit.repositories(RecordKey::for_tests()).audit_heads();
    let seen = heads.get(EVERYWHERE, feed.as_ref()).await.unwrap();
    let mut next = match &seen {
        Some(seen) => seen.edit(),
        None => AuditHead::empty(feed),
    };
    next.changes += i64::try_from(changes).unwrap();
    match seen {
        Some(seen) => drop(heads.replace(&seen, next).await.unwrap()),
        None => drop(heads.insert(next).await.unwrap()),
    }
}

fn entry(number: usize, action: &str, created_at: Timestamp) -> AuditEntry {
    let id = format!("{}-7000-8000-{number:012}", first_uuid(created_at));
    let entity_type = action.split('.').next().unwrap_or(action);
    AuditEntry {
        id: AuditId::parse(&id).unwrap(),
        stream: AuditStream::Changes,
        platform_id: None,
        actor_id: "ada".to_owned(),
        actor_type: "user".to_owned(),
        action: action.to_owned(),
        entity_type: entity_type.to_owned(),
        entity_id: "thing".to_owned(),
        before: None,
        after: None,
        metadata: JsonText::of(&json!({})),
        created_at,
    }
}

fn platform(number: usize, now: Timestamp) -> Platform {
    let name = format!("platform-{number}");
    let owner = PlatformOwner {
        user_id: None,
        organization_id: None,
    };
    let command = CreatePlatform {
        name: Name::parse(&name).unwrap(),
        slug: Slug::parse(&name).unwrap(),
        tier: Tier::Starter,
        cf_account_id: None,
        repo_name: None,
    };
    Platform::create(
        PlatformId::parse(&named_uuid(&name)).unwrap(),
        owner,
        command,
        now,
    )
}

fn first_counted_key(count: &Select) -> Option<String> {
    let parts = count.filter.conjuncts();
    parts.into_iter().find_map(|part| match part {
        Filter::Compare("id", Op::Ge, bound) => bound.as_text().map(str::to_owned),
        _ => None,
    })
}

#[tokio::test]
async fn a_total_after_a_change_counts_only_new_rows() {
    let mut world = World::new();
    world.add(MANY, "thing.made", HOUR).await;
    world.add(10, "thing.moved", HOUR).await;
    assert_eq!(world.total("thing.made").await, MANY as u64);
    assert!(
        world.bounds().contains(&None),
        "the first count has all rows"
    );
    world.add(2, "thing.made", Duration::ZERO).await;
    world.add(1, "thing.moved", Duration::ZERO).await;
    assert_eq!(world.total("thing.made").await, MANY as u64 + 2);
    let bounds = world.bounds();
    assert_eq!(bounds.len(), 2, "the new rows, and those that match");
    assert!(bounds.iter().all(Option::is_some));
    assert_eq!(world.total("thing.made").await, MANY as u64 + 2);
    assert_eq!(world.bounds(), [], "the list has not changed");
}

#[tokio::test]
async fn a_row_that_is_added_late_is_counted() {
    let mut world = World::new();
    world.add(MANY, "thing.made", HOUR).await;
    assert_eq!(world.total("thing.made").await, MANY as u64);
    world.add(1, "thing.made", HOUR).await;
    assert_eq!(world.total("thing.made").await, MANY as u64 + 1);
    assert!(world.bounds().contains(&None), "all rows are counted again");
}

#[tokio::test]
async fn rows_are_counted_again_after_a_removal() {
    let mut world = World::new();
    world.add(MANY, "thing.made", HOUR).await;
    let removed = |removed| world.total_after_removals("thing.made", removed);
    for version in [0, 3] {
        drop(world.bounds());
        assert_eq!(removed(version).await, MANY as u64);
        assert!(world.bounds().contains(&None));
    }
}

#[tokio::test]
async fn the_bound_of_a_count_follows_the_new_rows() {
    let mut world = World::new();
    world.add(MANY, "thing.made", HOUR).await;
    let mut total = MANY as u64;
    assert_eq!(world.total("thing.made").await, total);
    let mut bounds = Vec::new();
    for _ in 0..3 {
        world.clock.advance(HOUR);
        world
            .add(MANY + 1, "thing.made", Duration::from_secs(1))
            .await;
        total += MANY as u64 + 1;
        assert_eq!(world.total("thing.made").await, total);
        bounds.extend(world.bounds().into_iter().max());
    }
    assert!(bounds.iter().all(Option::is_some));
    assert!(bounds.is_sorted() && bounds.first() < bounds.last());
}

#[tokio::test]
async fn platforms_are_counted_again_only_after_one_changes() {
    let mut world = World::new();
    world.add_platforms(0..MANY).await;
    world.seal().await;
    assert_eq!(world.platforms().await, (MANY as u64, true));
    world.add(1, "entity.created", Duration::ZERO).await;
    assert_eq!(world.platforms().await, (MANY as u64, false));
    world.add_platforms(MANY..MANY + 1).await;
    assert_eq!(world.platforms().await, (MANY as u64 + 1, true));
    world.seal().await;
    assert_eq!(world.platforms().await, (MANY as u64 + 1, false));
}

/// Rows that are added together: their number, their age in seconds, and whether they match.
type Step = (usize, u64, bool);

async fn check_totals(steps: Vec<Step>) {
    let mut world = World::new();
    world.add(MANY, "thing.made", HOUR).await;
    let mut expected = MANY as u64;
    for (count, age, matches) in steps {
        world.clock.advance(Duration::from_secs(20));
        let action = if matches { "thing.made" } else { "thing.moved" };
        world.add(count, action, Duration::from_secs(age)).await;
        expected += if matches { count as u64 } else { 0 };
        assert_eq!(world.total("thing.made").await, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_total_is_exact_whatever_is_added(
        steps in prop::collection::vec((1_usize..700, 0_u64..90, any::<bool>()), 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(check_totals(steps));
    }
}
