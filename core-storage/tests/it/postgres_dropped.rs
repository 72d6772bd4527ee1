//! Tests of requests that are cancelled while one of their statements runs.

use std::sync::Arc;
use std::time::Duration;

use core_domain::port::Mode;
use core_storage::conformance::{ITEMS, TABLES, item};
use core_storage::postgres::{self, PostgresConfig};
use core_storage::testing::{self, Proxy, TestDatabase};
use core_storage::{Filter, RowStore, Value};
use tokio::task::JoinSet;

/// A timeout that only a hanging test reaches.
const TIMEOUT: Duration = Duration::from_secs(120);
const CONNECTIONS: usize = 8;
const REQUESTS: usize = 1_000;

/// Limits connections to those that wait for a lock.
const WAITING: &str = "AND wait_event_type = 'Lock'";

async fn open(url: &str, change: fn(&mut PostgresConfig)) -> Arc<dyn RowStore> {
    let mut config = PostgresConfig::new(url, [7; 32]);
    config.connections = u32::try_from(CONNECTIONS).unwrap();
    config.acquire_timeout = TIMEOUT;
    config.lock_timeout = TIMEOUT;
    config.statement_timeout = TIMEOUT;
    change(&mut config);
    let opened = postgres::rows(config, TABLES).await;
    opened.expect("Postgres opens")
}

/// Counts the connections to the database, without those of observers.
async fn connections(observer: &tokio_postgres::Client, condition: &str) -> usize {
    let count = format!(
        "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
         AND backend_type = 'client backend' AND application_name <> 'observer' {condition}"
    );
    let count: i64 = observer.query_one(&count, &[]).await.unwrap().get(0);
    usize::try_from(count).unwrap()
}

async fn observer(database: &TestDatabase) -> tokio_postgres::Client {
    let observer = testing::connect(&database.url).await;
    let named = observer.batch_execute("SET application_name = 'observer'");
    named.await.unwrap();
    observer
}

/// Adds the row that other units wait for.
async fn add_row(store: &dyn RowStore) {
    let mut tx = store.begin(Mode::Write).await.unwrap();
    tx.insert(&ITEMS, item("postgres", "1", 0)).await.unwrap();
    tx.commit().await.unwrap();
}

/// Locks that row on a separate connection.
async fn lock_row(database: &TestDatabase) -> tokio_postgres::Client {
    let locker = observer(database).await;
    let lock = "BEGIN; SELECT 1 FROM conformance_items FOR UPDATE";
    locker.batch_execute(lock).await.unwrap();
    locker
}

/// Waits for the locked row, and cancels after a short time.
async fn give_up(store: Arc<dyn RowStore>) {
    let mut tx = store.begin(Mode::ReadCommitted).await.unwrap();
    let (by_key, change) = (Filter::eq("id", "postgres-1"), [("rank", Value::Int(1))]);
    let update = tx.update(&ITEMS, &by_key, &change);
    let given_up = tokio::time::timeout(Duration::from_millis(3), update).await;
    assert!(given_up.is_err(), "the row is locked");
}

/// Waits until every connection of a pool of this size is free. A connection is free once its work has ended.
async fn assert_complete(store: &dyn RowStore, size: usize) {
    let (mut units, all) = (Vec::new(), Filter::all());
    for _ in 0..size {
        let mut unit = store.begin(Mode::Read).await.unwrap();
        let read = tokio::time::timeout(TIMEOUT, unit.count(&ITEMS, &all));
        assert_eq!(read.await.expect("the pool is complete").unwrap(), 1);
        units.push(unit);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_cancelled_requests_leave_the_pool_complete_and_no_statement_running() {
    let database = testing::postgres().await;
    let store = open(&database.url, |_| {}).await;
    add_row(store.as_ref()).await;
    let locker = lock_row(&database).await;
    let observer = observer(&database).await;

    let mut requests = JoinSet::new();
    for _ in 0..REQUESTS {
        requests.spawn(give_up(store.clone()));
    }
    let mut most = 0;
    let ended = tokio::time::timeout(TIMEOUT, async {
        while let Some(ended) = requests.join_next().await {
            ended.expect("a request gets a connection");
            if requests.len().is_multiple_of(10) {
                most = most.max(connections(&observer, "").await);
            }
        }
    });
    ended.await.expect("every request ends soon");
    // A closed connection may still exist on the server when the next one is opened.
    assert!(most <= 2 * CONNECTIONS, "{most} connections");

    assert_complete(store.as_ref(), CONNECTIONS).await;
    assert_eq!(connections(&observer, WAITING).await, 0);
    locker.batch_execute("ROLLBACK").await.unwrap();
    let mut tx = store.begin(Mode::Write).await.unwrap();
    let (by_key, change) = (Filter::eq("id", "postgres-1"), [("rank", Value::Int(2))]);
    assert_eq!(tx.update(&ITEMS, &by_key, &change).await.unwrap(), 1);
    tx.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_cancelled_during_a_short_statement_returns_its_connection() {
    let database = testing::postgres().await;
    let store = open(&database.url, |config| config.connections = 2).await;
    let observer = observer(&database).await;
    for id in 0..100 {
        let mut tx = store.begin(Mode::Write).await.unwrap();
        let row = item("postgres", &id.to_string(), 0);
        let insert = tx.insert(&ITEMS, row);
        // The statement is sent, and its reply is not awaited.
        let given_up = tokio::time::timeout(Duration::ZERO, insert).await;
        drop(given_up);
        drop(tx);
        assert!(connections(&observer, "").await <= 3);
    }
    let mut tx = store.begin(Mode::Read).await.unwrap();
    assert_eq!(tx.count(&ITEMS, &Filter::all()).await.unwrap(), 0);
}

/// A server ignores a request to cancel a statement that has not arrived yet.
#[tokio::test]
async fn a_statement_that_arrives_after_its_cancel_request_is_still_cancelled() {
    let database = testing::postgres().await;
    let proxy = Proxy::start(&database.url).await;
    let through = database.url_through(&[&proxy]);
    let store = open(&through, |config| config.connections = 2).await;
    add_row(store.as_ref()).await;
    let (by_key, change) = (Filter::eq("id", "postgres-1"), [("rank", Value::Int(1))]);
    let mut tx = store.begin(Mode::ReadCommitted).await.unwrap();
    // From now on the statement is prepared on the connection.
    assert_eq!(tx.update(&ITEMS, &by_key, &change).await.unwrap(), 1);
    tx.commit().await.unwrap();
    let _locker = lock_row(&database).await;
    let observer = observer(&database).await;

    let mut tx = store.begin(Mode::ReadCommitted).await.unwrap();
    tx.now().await.unwrap();
    proxy.hold();
    let before = proxy.accepted();
    let update = tx.update(&ITEMS, &by_key, &change);
    let given_up = tokio::time::timeout(Duration::ZERO, update).await;
    assert!(given_up.is_err(), "the statement is held back");
    drop(tx);
    let cancelled_twice = tokio::time::timeout(TIMEOUT, async {
        while proxy.accepted() < before + 2 {
            tokio::task::yield_now().await;
        }
    });
    cancelled_twice
        .await
        .expect("the request is sent again while the statement has not ended");
    proxy.release();

    assert_complete(store.as_ref(), 2).await;
    assert_eq!(connections(&observer, WAITING).await, 0);
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let database = testing::postgres().await;
    let store = open(&database.url, |config| {
        config.max_idle = Duration::from_millis(100);
    })
    .await;
    let units = [store.begin(Mode::Read).await, store.begin(Mode::Read).await];
    drop(units);
    let observer = observer(&database).await;
    let closed = tokio::time::timeout(TIMEOUT, async {
        while connections(&observer, "").await > 0 {}
    });
    closed.await.expect("idle connections are closed");
    let mut tx = store.begin(Mode::Auto).await.unwrap();
    assert_eq!(tx.count(&ITEMS, &Filter::all()).await.unwrap(), 0);
}
