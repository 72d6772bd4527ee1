//! Tests of rows that a unit inserts or locks by their keys: on every engine, and with concurrent units on Postgres.

use std::sync::Arc;

use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::Mode;
use core_domain::testing::ManualClock;
use core_storage::conformance::{ITEMS, TABLES, item};
use core_storage::postgres::{self, PostgresConfig};
use core_storage::sqlite::{self, SqliteConfig};
use core_storage::testing;
use core_storage::{
    Filter, ReadRow, Replacement, Row, RowStore, RowTx, Select, VERSION, Value, memory,
};

const KEY: [u8; 32] = [7; 32];
const PLATFORM: &str = "locked";

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::EPOCH))
}

fn rank(row: &Row) -> i64 {
    row[ITEMS.column_index("rank").unwrap()].as_int().unwrap()
}

async fn lock(tx: &mut dyn RowTx, ids: &[&str]) -> Result<Vec<Row>, StoreError> {
    let rows = ids.iter().map(|id| item(PLATFORM, id, 0)).collect();
    let mut locked = Vec::new();
    let mut visit = |row: &dyn ReadRow| {
        locked.push(ITEMS.copy_row(row)?);
        Ok(())
    };
    tx.insert_or_lock(&ITEMS, rows, &mut visit).await?;
    locked.sort();
    Ok(locked)
}

/// Adds one to the rank of each row, which the unit has locked.
async fn raise(tx: &mut dyn RowTx, rows: Vec<Row>) -> Result<(), StoreError> {
    let raised = rows.into_iter().map(|old| {
        let mut new = old.clone();
        new[ITEMS.column_index("rank").unwrap()] = Value::Int(rank(&old) + 1);
        let version = ITEMS.column_index(VERSION).unwrap();
        new[version] = Value::Int(old[version].as_int().unwrap() + 1);
        Replacement { old, new }
    });
    tx.replace_locked(&ITEMS, raised.collect()).await
}

async fn ranks(tx: &mut dyn RowTx) -> Result<Vec<i64>, StoreError> {
    let mut ranks = Vec::new();
    let mut visit = |row: &dyn ReadRow| {
        ranks.push(rank(&ITEMS.copy_row(row)?));
        Ok(())
    };
    let all = Filter::eq("platform_id", PLATFORM);
    tx.select(&Select::of(&ITEMS).filter(all), &mut visit)
        .await?;
    Ok(ranks)
}

async fn raise_twice(store: &Arc<dyn RowStore>) {
    let mut tx = store.begin(Mode::Write).await.unwrap();
    let locked = lock(tx.as_mut(), &["1", "2"]).await.unwrap();
    assert_eq!(locked.iter().map(rank).collect::<Vec<_>>(), [0, 0]);
    raise(tx.as_mut(), locked).await.unwrap();
    // The same unit locks one of the rows again, and a new one.
    let locked = lock(tx.as_mut(), &["2", "3"]).await.unwrap();
    assert_eq!(locked.iter().map(rank).collect::<Vec<_>>(), [1, 0]);
    raise(tx.as_mut(), locked).await.unwrap();
    assert_eq!(ranks(tx.as_mut()).await.unwrap(), [1, 2, 1]);
    tx.commit().await.unwrap();

    let mut tx = store.begin(Mode::Write).await.unwrap();
    let locked = lock(tx.as_mut(), &["1", "4"]).await.unwrap();
    assert_eq!(locked.iter().map(rank).collect::<Vec<_>>(), [1, 0]);
    raise(tx.as_mut(), locked).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = store.begin(Mode::Read).await.unwrap();
    assert_eq!(ranks(tx.as_mut()).await.unwrap(), [2, 2, 1, 1]);

    let mut tx = store.begin(Mode::Write).await.unwrap();
    let locked = lock(tx.as_mut(), &["5"]).await.unwrap();
    raise(tx.as_mut(), locked).await.unwrap();
    tx.rollback().await;
    let mut tx = store.begin(Mode::Read).await.unwrap();
    assert_eq!(ranks(tx.as_mut()).await.unwrap().len(), 4);
}

#[tokio::test]
async fn rows_are_inserted_or_locked_and_replaced_on_every_engine() {
    raise_twice(&memory::rows(clock())).await;
    let folder = tempfile::tempdir().unwrap();
    let file = SqliteConfig::new(folder.path().join("core.db"), clock(), KEY);
    raise_twice(&sqlite::rows(file, TABLES).await.unwrap()).await;
    let database = testing::postgres().await;
    let server = PostgresConfig::new(&*database.url, KEY);
    raise_twice(&postgres::rows(server, TABLES).await.unwrap()).await;
}

#[tokio::test]
async fn serializable_units_that_lock_different_rows_do_not_conflict_on_postgres() {
    let database = testing::postgres().await;
    let server = PostgresConfig::new(&*database.url, KEY);
    let store = postgres::rows(server, TABLES).await.unwrap();
    let mut tx = store.begin(Mode::Write).await.unwrap();
    lock(tx.as_mut(), &["1", "2"]).await.unwrap();
    tx.commit().await.unwrap();
    // Existing rows, and new rows that are next to each other in every index.
    for (one, other) in [("1", "2"), ("3", "4"), ("5", "2")] {
        let mut first = store.begin(Mode::Write).await.unwrap();
        let mut second = store.begin(Mode::Write).await.unwrap();
        let of_first = lock(first.as_mut(), &[one]).await.unwrap();
        let of_second = lock(second.as_mut(), &[other]).await.unwrap();
        raise(first.as_mut(), of_first).await.unwrap();
        raise(second.as_mut(), of_second).await.unwrap();
        first.commit().await.expect("no other unit conflicts");
        second.commit().await.expect("no other unit conflicts");
    }
}

#[tokio::test]
async fn a_serializable_unit_that_locks_a_concurrently_changed_row_must_be_retried() {
    let database = testing::postgres().await;
    let server = PostgresConfig::new(&*database.url, KEY);
    let store = postgres::rows(server, TABLES).await.unwrap();
    let mut late = store.begin(Mode::Write).await.unwrap();
    assert_eq!(ranks(late.as_mut()).await.unwrap(), Vec::<i64>::new());
    let mut early = store.begin(Mode::Write).await.unwrap();
    let locked = lock(early.as_mut(), &["1"]).await.unwrap();
    raise(early.as_mut(), locked).await.unwrap();
    early.commit().await.unwrap();
    let locked = lock(late.as_mut(), &["1"]).await;
    assert!(matches!(locked, Err(StoreError::Retry(_))), "{locked:?}");
}
