//! Tests of the features that only the Postgres engine has: connections, schema, timeouts, hints.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::StoreError;
use core_domain::port::JobHints;
use core_domain::port::Mode;
use core_storage::conformance::{ITEMS, TABLES, item};
use core_storage::postgres::{self, Hints, PostgresConfig};
use core_storage::testing::{self, TestDatabase};
use core_storage::{Filter, RowStore, Table, Value};

/// A timeout that only a hanging test reaches.
const TIMEOUT: Duration = Duration::from_secs(60);

fn config(database: &TestDatabase) -> PostgresConfig {
    PostgresConfig::new(&*database.url, [7; 32])
}

async fn open(config: PostgresConfig) -> Arc<dyn RowStore> {
    let opened = postgres::rows(config, TABLES).await;
    opened.expect("Postgres opens")
}

async fn count(store: &Arc<dyn RowStore>) -> Result<u64, StoreError> {
    let mut tx = store.begin(Mode::Auto).await?;
    tx.count(&ITEMS, &Filter::all()).await
}

async fn add(store: &Arc<dyn RowStore>, id: &str) -> Result<(), StoreError> {
    let mut tx = store.begin(Mode::Write).await?;
    tx.insert(&ITEMS, item("postgres", id, 0)).await?;
    tx.commit().await
}

#[tokio::test]
async fn a_connection_that_is_lost_while_idle_is_replaced() {
    let database = testing::postgres().await;
    let store = open(config(&database)).await;
    database.end_connections().await;
    add(&store, "1").await.expect("a unit that writes begins");
    database.end_connections().await;
    assert_eq!(count(&store).await.expect("a single read runs"), 1);
}

#[tokio::test]
async fn a_dropped_unit_returns_its_connection_to_the_pool() {
    let database = testing::postgres().await;
    let mut config = config(&database);
    config.connections = 2;
    let store = open(config).await;
    for id in 0..20 {
        let mut tx = store
            .begin(Mode::Write)
            .await
            .expect("a connection is free");
        tx.insert(&ITEMS, item("postgres", &id.to_string(), 0))
            .await
            .unwrap();
        drop(tx);
    }
    assert_eq!(count(&store).await.unwrap(), 0);
}

/// A table that does not exist in the database.
static MISSING: Table = Table {
    name: "missing",
    columns: ITEMS.columns,
    uniques: &[],
    indexes: &[],
    parent: None,
    append_only: false,
    archive: None,
};

/// Runs a failing call in a new unit, and drops the unit.
async fn fail(store: &Arc<dyn RowStore>, round: u64) -> StoreError {
    let mut tx = store.begin(Mode::Write).await.unwrap();
    let failed = match round % 3 {
        0 => tx.count(&MISSING, &Filter::all()).await.map(drop),
        1 => tx.delete(&MISSING, &Filter::all()).await.map(drop),
        _ => {
            tx.append(&MISSING, vec![item("postgres", "missing", 0)])
                .await
                .unwrap();
            tx.commit().await
        }
    };
    failed.unwrap_err()
}

#[tokio::test]
async fn a_failed_unit_leaves_no_state_on_its_connection() {
    let database = testing::postgres().await;
    let mut config = config(&database);
    config.connections = 2;
    let store = open(config).await;
    for round in 0..6 {
        let error = fail(&store, round).await;
        assert!(matches!(error, StoreError::Backend(_)), "{error:?}");
        add(&store, &round.to_string()).await.unwrap();
        assert_eq!(count(&store).await.unwrap(), round + 1);
        let other = testing::connect(&database.url).await;
        let rows = other.query_one("SELECT COUNT(*) FROM conformance_items", &[]);
        let rows: i64 = rows.await.unwrap().get(0);
        assert_eq!(u64::try_from(rows).unwrap(), round + 1);
    }
}

#[tokio::test]
async fn a_read_unit_releases_its_snapshot_when_it_ends() {
    let database = testing::postgres().await;
    let mut config = config(&database);
    config.connections = 2;
    let store = open(config).await;
    for number in 0..4 {
        let mut tx = store.begin(Mode::Read).await.unwrap();
        assert_eq!(tx.count(&ITEMS, &Filter::all()).await.unwrap(), number);
        tx.commit().await.unwrap();
        add(&store, &number.to_string()).await.unwrap();
    }
    let other = testing::connect(&database.url).await;
    let open = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
         AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'";
    let open = other.query_one(open, &[]).await.unwrap();
    assert_eq!(open.get::<_, i64>(0), 0);
}

#[tokio::test]
async fn a_unit_that_gets_no_connection_in_time_fails_as_unavailable() {
    let database = testing::postgres().await;
    let mut config = config(&database);
    config.connections = 2;
    config.acquire_timeout = Duration::from_secs(1);
    let store = open(config).await;
    let held = (store.begin(Mode::Read).await, store.begin(Mode::Read).await);
    assert!(held.0.is_ok() && held.1.is_ok());
    let refused = store.begin(Mode::Auto).await.map(|_| ());
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    drop(held);
    count(&store).await.expect("a connection is free again");
}

#[tokio::test]
async fn a_unit_that_waits_too_long_for_a_lock_must_be_retried() {
    let database = testing::postgres().await;
    let mut config = config(&database);
    config.lock_timeout = Duration::from_millis(50);
    let store = open(config).await;
    add(&store, "1").await.unwrap();
    let change = [("rank", Value::Int(1))];
    let by_key = Filter::eq("id", "postgres-1");
    let mut first = store.begin(Mode::ReadCommitted).await.unwrap();
    assert_eq!(first.update(&ITEMS, &by_key, &change).await.unwrap(), 1);
    let mut second = store.begin(Mode::ReadCommitted).await.unwrap();
    let waited = second.update(&ITEMS, &by_key, &change).await;
    assert!(matches!(waited, Err(StoreError::Retry(_))), "{waited:?}");
    first.commit().await.unwrap();
}

#[tokio::test]
async fn tables_are_created_in_the_configured_schema() {
    let database = testing::postgres().await;
    let mut stores = Vec::new();
    for schema in ["core_one", "core_two"] {
        let mut config = config(&database);
        config.schema = Some(schema.to_owned());
        stores.push(open(config).await);
    }
    add(&stores[0], "1").await.unwrap();
    assert_eq!(count(&stores[0]).await.unwrap(), 1);
    assert_eq!(count(&stores[1]).await.unwrap(), 0);
    let other = testing::connect(&database.url).await;
    let in_public = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'public'";
    let in_public = other.query_one(in_public, &[]).await.unwrap();
    assert_eq!(in_public.get::<_, i64>(0), 0);
}

async fn expect_hint(hints: &Hints) {
    let hinted = tokio::time::timeout(TIMEOUT, hints.wait_for_hint()).await;
    hinted.expect("a hint arrives");
}

#[tokio::test]
async fn a_hint_reaches_every_process_on_the_database() {
    let database = testing::postgres().await;
    let open = || Hints::open(&config(&database), "core_test").expect("the URL is valid");
    let (one, other) = (open(), open());
    // Returns after both have started to listen.
    expect_hint(&one).await;
    expect_hint(&other).await;
    for _ in 0..3 {
        one.notify().await;
        expect_hint(&other).await;
        expect_hint(&one).await;
    }
}

#[tokio::test]
async fn a_listener_receives_a_hint_after_it_has_reconnected() {
    let database = testing::postgres().await;
    let hints = Hints::open(&config(&database), "core_test").expect("the URL is valid");
    expect_hint(&hints).await;
    database.end_connections().await;
    expect_hint(&hints).await;
    hints.notify().await;
    expect_hint(&hints).await;
}
