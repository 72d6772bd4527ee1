//! Tests of the calls that a unit of records makes to the engine, and of the results that it reuses.

use std::sync::Arc;

use core_domain::access::RecordKey;
use core_domain::kernel::{EntityId, Name, PageQuery, PlatformId, Slug, StoreError, Timestamp};
use core_domain::port::{Mode, Repository, Store, UnitOfWork, Within};
use core_domain::registry::{Entity, EntityFilter, EntityQuery, EntityStatus, EntityType};
use core_domain::testing::{ManualClock, named_uuid};
use core_storage::fault::FaultStore;
use core_storage::{RecordStore, memory};

const EVERYWHERE: Within<'static> = Within::Installation;

fn store() -> (Arc<dyn Store>, FaultStore) {
    let faults = FaultStore::new(memory::rows(Arc::new(ManualClock::at(Timestamp::EPOCH))));
    let store = RecordStore::new(Arc::new(faults.clone()), [7; 32]);
    (Arc::new(store), faults)
}

fn platform(id: &str) -> PlatformId {
    PlatformId::parse(&named_uuid(id)).unwrap()
}

fn entity(id: &str) -> Entity {
    Entity {
        id: EntityId::parse(id).unwrap(),
        platform_id: platform("p1"),
        parent_id: None,
        depth: 0,
        entity_type: EntityType::Tenant,
        name: Name::parse(id).unwrap(),
        slug: Slug::parse(id).unwrap(),
        status: EntityStatus::Active,
        created_at: Timestamp::EPOCH,
        updated_at: Timestamp::EPOCH,
        deleted_at: None,
    }
}

fn entities(unit: &mut dyn UnitOfWork) -> &mut dyn Repository<Entity> {
    unit.repositories(RecordKey::for_tests()).entities()
}

async fn add(store: &Arc<dyn Store>, ids: &[&str]) {
    let mut unit = store.begin(Mode::Write).await.unwrap();
    for id in ids {
        entities(unit.as_mut()).insert(entity(id)).await.unwrap();
    }
    unit.commit().await.unwrap();
}

fn list_query() -> EntityQuery {
    EntityQuery::Listed(EntityFilter::default())
}

async fn count(unit: &mut dyn UnitOfWork) -> u64 {
    let query = list_query();
    entities(unit).count(EVERYWHERE, &query).await.unwrap()
}

async fn total(store: &Arc<dyn Store>) -> Result<u64, StoreError> {
    let mut unit = store.begin(Mode::Read).await?;
    let entities = entities(unit.as_mut());
    let (query, first) = (list_query(), PageQuery::first(1));
    Ok(entities.page(EVERYWHERE, &query, &first).await?.total)
}

#[tokio::test]
async fn a_list_is_counted_once_while_its_table_does_not_change() {
    let (store, faults) = store();
    add(&store, &["a", "b"]).await;
    assert_eq!(total(&store).await.unwrap(), 2);
    // The calls are `begin` and `select`. A count would be the third call.
    faults.fail_call(3);
    assert_eq!(total(&store).await.unwrap(), 2);
    assert!(!faults.has_failed());
}

#[tokio::test]
async fn a_total_reflects_only_committed_changes() {
    let (store, _) = store();
    add(&store, &["a", "b"]).await;
    assert_eq!(total(&store).await.unwrap(), 2);
    let mut open = store.begin(Mode::Write).await.unwrap();
    let added = entities(open.as_mut()).insert(entity("c")).await.unwrap();
    assert_eq!(total(&store).await.unwrap(), 2);
    assert_eq!(
        count(open.as_mut()).await,
        3,
        "a unit counts its own changes"
    );
    open.rollback().await;
    assert_eq!(total(&store).await.unwrap(), 2);
    add(&store, &["c"]).await;
    assert_eq!(total(&store).await.unwrap(), 3);
    let mut unit = store.begin(Mode::Write).await.unwrap();
    entities(unit.as_mut()).remove(&added).await.unwrap();
    unit.commit().await.unwrap();
    assert_eq!(total(&store).await.unwrap(), 2);
}

#[tokio::test]
async fn a_read_unit_counts_its_snapshot_even_after_later_commits() {
    let (store, _) = store();
    add(&store, &["a"]).await;
    let mut reader = store.begin(Mode::Read).await.unwrap();
    add(&store, &["b"]).await;
    assert_eq!(total(&store).await.unwrap(), 2);
    assert_eq!(count(reader.as_mut()).await, 1);
    assert_eq!(total(&store).await.unwrap(), 2);
}

#[tokio::test]
async fn a_unit_reads_a_record_by_its_key_once() {
    for mode in [Mode::Read, Mode::Write] {
        let (store, faults) = store();
        add(&store, &["a"]).await;
        let mut unit = store.begin(mode).await.unwrap();
        let first = entities(unit.as_mut()).get(EVERYWHERE, "a").await.unwrap();
        faults.fail_call(1);
        let second = entities(unit.as_mut()).get(EVERYWHERE, "a").await.unwrap();
        assert_eq!(first, second);
        assert!(!faults.has_failed());
    }
}

#[tokio::test]
async fn units_in_auto_and_read_committed_mode_read_a_record_each_time() {
    for mode in [Mode::Auto, Mode::ReadCommitted] {
        let (store, faults) = store();
        add(&store, &["a"]).await;
        let mut unit = store.begin(mode).await.unwrap();
        let first = entities(unit.as_mut()).get(EVERYWHERE, "a").await;
        assert!(first.unwrap().is_some());
        faults.fail_call(1);
        let second = entities(unit.as_mut()).get(EVERYWHERE, "a").await;
        assert!(matches!(second, Err(StoreError::Unavailable(_))));
    }
}

#[tokio::test]
async fn a_unit_reads_its_own_changes() {
    let (store, _) = store();
    add(&store, &["a", "b", "c"]).await;
    let mut unit = store.begin(Mode::Write).await.unwrap();
    let entities = entities(unit.as_mut());
    let mut seen = Vec::new();
    for id in ["a", "b", "c"] {
        seen.push(entities.get(EVERYWHERE, id).await.unwrap().unwrap());
    }
    let mut next = seen[0].edit();
    next.name = Name::parse("Another").unwrap();
    let replaced = entities.replace(&seen[0], next).await.unwrap();
    assert_eq!(
        entities.get(EVERYWHERE, "a").await.unwrap(),
        Some(replaced.clone())
    );
    entities.remove(&seen[1]).await.unwrap();
    assert_eq!(entities.get(EVERYWHERE, "b").await.unwrap(), None);
    let mut next = replaced.edit();
    next.depth = 3;
    let many = entities.replace_many(vec![(replaced, next)]).await.unwrap();
    assert_eq!(
        entities.get(EVERYWHERE, "a").await.unwrap(),
        many.first().cloned()
    );
    entities
        .remove_all(EVERYWHERE, &list_query())
        .await
        .unwrap();
    assert_eq!(entities.get(EVERYWHERE, "a").await.unwrap(), None);
    assert_eq!(entities.get(EVERYWHERE, "c").await.unwrap(), None);
}

#[tokio::test]
async fn a_record_that_was_read_is_not_returned_for_another_platform() {
    let (store, _) = store();
    add(&store, &["a"]).await;
    let mut unit = store.begin(Mode::Read).await.unwrap();
    let (own, other) = (platform("p1"), platform("p2"));
    let entities = entities(unit.as_mut());
    for within in [EVERYWHERE, Within::Platform(&own), EVERYWHERE] {
        assert!(entities.get(within, "a").await.unwrap().is_some());
        let foreign = entities.get(Within::Platform(&other), "a").await.unwrap();
        assert!(foreign.is_none());
    }
}
