//! Requests that are cancelled while one of their statements runs.

use std::sync::Arc;
use std::time::Duration;

use core_domain::port::Mode;
use core_sqlx::SqlxConfig;
use core_storage::conformance::{ITEMS, item};
use core_storage::testing::{self, TestDatabase};
use core_storage::{Filter, RowStore, Value};
use tokio::task::JoinSet;

use crate::world::{KEY, TIMEOUT, add, count, open, pool, store};

const CONNECTIONS: u32 = 8;
const REQUESTS: usize = 200;

/// Limits connections to those that wait for a lock.
const WAITING: &str = "AND wait_event_type = 'Lock'";

/// Counts the connections to the database, without those of observers.
async fn connections(observer: &tokio_postgres::Client, condition: &str) -> u32 {
    let count = format!(
        "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
         AND backend_type = 'client backend' AND application_name <> 'observer' {condition}"
    );
    let count: i64 = observer.query_one(&count, &[]).await.unwrap().get(0);
    u32::try_from(count).unwrap()
}

async fn observer(database: &TestDatabase) -> tokio_postgres::Client {
    let observer = testing::connect(&database.url).await;
    let named = observer.batch_execute("SET application_name = 'observer'");
    named.await.unwrap();
    observer
}

/// Waits for the locked row, and cancels after a short time.
async fn give_up(store: Arc<dyn RowStore>) {
    let mut tx = store.begin(Mode::ReadCommitted).await.unwrap();
    let (by_key, change) = (Filter::eq("id", "sqlx-1"), [("rank", Value::Int(1))]);
    let update = tx.update(&ITEMS, &by_key, &change);
    let given_up = tokio::time::timeout(Duration::from_millis(3), update).await;
    assert!(given_up.is_err(), "the row is locked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_requests_leave_the_pool_complete_and_no_statement_running() {
    let database = testing::postgres().await;
    let mut config = SqlxConfig::new(pool(&database.url, CONNECTIONS), KEY);
    config.timeouts.lock = TIMEOUT;
    config.timeouts.statement = TIMEOUT;
    let store = open(config).await;
    add(&store, "1").await.unwrap();
    let locker = observer(&database).await;
    let lock = "BEGIN; SELECT 1 FROM conformance_items FOR UPDATE";
    locker.batch_execute(lock).await.unwrap();
    let observer = observer(&database).await;

    let mut requests = JoinSet::new();
    for _ in 0..REQUESTS {
        requests.spawn(give_up(store.clone()));
    }
    let mut most = 0;
    while let Some(ended) = requests.join_next().await {
        ended.expect("a request gets a connection");
        if requests.len().is_multiple_of(10) {
            most = most.max(connections(&observer, "").await);
        }
    }
    // Each connection may have a second one that cancels its statement, and closed ones may still exist on the server.
    assert!(most <= 3 * CONNECTIONS, "{most} connections");

    let (mut units, all) = (Vec::new(), Filter::all());
    for _ in 0..CONNECTIONS {
        let mut unit = store.begin(Mode::Read).await.unwrap();
        let read = tokio::time::timeout(TIMEOUT, unit.count(&ITEMS, &all));
        assert_eq!(read.await.expect("the pool is complete").unwrap(), 1);
        units.push(unit);
    }
    assert_eq!(connections(&observer, WAITING).await, 0);
    drop(units);
    locker.batch_execute("ROLLBACK").await.unwrap();
    let mut tx = store.begin(Mode::Write).await.unwrap();
    let (by_key, change) = (Filter::eq("id", "sqlx-1"), [("rank", Value::Int(2))]);
    assert_eq!(tx.update(&ITEMS, &by_key, &change).await.unwrap(), 1);
    tx.commit().await.unwrap();
}

/// Cancels a unit after each number of polls, so that every await of a unit is a point of cancellation.
#[tokio::test]
async fn a_request_cancelled_at_any_point_leaves_no_transaction_open() {
    let database = testing::postgres().await;
    let pool = pool(&database.url, 1);
    let store = open(SqlxConfig::new(pool.clone(), KEY)).await;
    for polls in 0..40 {
        let work = async {
            let mut tx = store.begin(Mode::Write).await.unwrap();
            tx.now().await.unwrap();
            let row = item("sqlx", "cancelled", polls);
            tx.insert(&ITEMS, row).await.unwrap();
            tx.count(&ITEMS, &Filter::all()).await.unwrap();
            tx.rollback().await;
        };
        let mut work = std::pin::pin!(work);
        let mut left = polls;
        std::future::poll_fn(|cx| {
            left -= 1;
            match work.as_mut().poll(cx) {
                std::task::Poll::Pending if left > 0 => std::task::Poll::Pending,
                _ => std::task::Poll::Ready(()),
            }
        })
        .await;
    }
    for polls in 0..40 {
        let rows: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM conformance_items")
            .fetch_one(&pool)
            .await
            .unwrap();
        assert_eq!(rows, 0, "{polls}");
        // A statement of the host program commits by itself: no transaction of the suite is open.
        let assigned: Option<String> =
            sqlx::query_scalar("SELECT pg_current_xact_id_if_assigned()::text")
                .fetch_one(&pool)
                .await
                .unwrap();
        assert_eq!(assigned, None);
    }
    assert_eq!(count(&store).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_cancelled_during_a_short_statement_returns_its_connection() {
    let database = testing::postgres().await;
    let store = store(&database, 2).await;
    let observer = observer(&database).await;
    for id in 0..100 {
        let mut tx = store.begin(Mode::Write).await.unwrap();
        let row = item("sqlx", &id.to_string(), 0);
        let insert = tx.insert(&ITEMS, row);
        // The statement is sent, and its reply is not awaited.
        let given_up = tokio::time::timeout(Duration::ZERO, insert).await;
        drop(given_up);
        drop(tx);
        assert!(connections(&observer, "").await <= 3);
    }
    assert_eq!(count(&store).await.unwrap(), 0);
}

#[test]
fn a_unit_may_be_dropped_after_its_runtime_has_ended() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (database, tx) = runtime.block_on(async {
        let database = testing::postgres().await;
        let store = store(&database, 2).await;
        let mut tx = store.begin(Mode::Write).await.unwrap();
        tx.insert(&ITEMS, item("sqlx", "1", 0)).await.unwrap();
        (database, tx)
    });
    drop(runtime);
    drop(tx);
    drop(database);
}
