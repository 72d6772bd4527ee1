//! Requests that are cancelled while one of their statements runs.

use std::sync::Arc;

use core_domain::port::Mode;
use core_sqlx::SqlxConfig;
use core_storage::conformance::{ITEMS, item};
use core_storage::testing;
use core_storage::testing::cancelled::PooledStore;
use core_storage::{Filter, RowStore};

use crate::world::{KEY, TIMEOUT, count, open, pool, store};

/// Returns the store for the checks of every engine.
fn pooled_store(store: Arc<dyn RowStore>, connections: usize) -> PooledStore {
    PooledStore { store, connections }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelled_requests_leave_the_pool_complete_and_no_statement_running() {
    let database = testing::postgres().await;
    let mut config = SqlxConfig::new(pool(&database.url, 8), KEY);
    config.timeouts.lock = TIMEOUT;
    config.timeouts.statement = TIMEOUT;
    let store = pooled_store(open(config).await, 8);
    // Each connection may have a second one that cancels its statement, and closed ones may still exist on the server.
    store.check_cancelled_requests(&database, 200, 24).await;
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
    let store = pooled_store(store(&database, 2).await, 2);
    store.check_cancelled_inserts(&database).await;
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
