//! Tests of requests that are cancelled while one of their statements runs.

use std::time::Duration;

use core_domain::port::Mode;
use core_storage::Filter;
use core_storage::conformance::{ITEMS, TABLES};
use core_storage::postgres::{self, PostgresConfig};
use core_storage::testing::cancelled::{PooledStore, lock_row, update_row};
use core_storage::testing::{self, Proxy};

/// A timeout that only a hanging test reaches.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Opens a store with this number of connections.
async fn open(url: &str, connections: u32, change: fn(&mut PostgresConfig)) -> PooledStore {
    let mut config = PostgresConfig::new(url, [7; 32]);
    config.connections = connections;
    config.acquire_timeout = TIMEOUT;
    config.lock_timeout = TIMEOUT;
    config.statement_timeout = TIMEOUT;
    change(&mut config);
    let opened = postgres::rows(config, TABLES).await;
    PooledStore {
        store: opened.expect("Postgres opens"),
        connections: usize::try_from(connections).unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_cancelled_requests_leave_the_pool_complete_and_no_statement_running() {
    let database = testing::postgres().await;
    let store = open(&database.url, 8, |_| {}).await;
    // A closed connection may still exist on the server when the next one is opened.
    store.check_cancelled_requests(&database, 1_000, 16).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_cancelled_during_a_short_statement_returns_its_connection() {
    let database = testing::postgres().await;
    let store = open(&database.url, 2, |_| {}).await;
    store.check_cancelled_inserts(&database).await;
}

/// A server ignores a request to cancel a statement that has not arrived yet.
#[tokio::test]
async fn a_statement_that_arrives_after_its_cancel_request_is_still_cancelled() {
    let database = testing::postgres().await;
    let proxy = Proxy::start(&database.url).await;
    let store = open(&database.url_through(&[&proxy]), 2, |_| {}).await;
    store.add_row().await;
    // From now on the statement is prepared on the connection.
    store.update_row(1).await;
    let _locker = lock_row(&database).await;
    let observer = database.observe().await;

    let mut tx = store.store.begin(Mode::ReadCommitted).await.unwrap();
    tx.now().await.unwrap();
    proxy.hold();
    let before = proxy.accepted_connections();
    let update = update_row(tx.as_mut(), 1);
    let given_up = tokio::time::timeout(Duration::ZERO, update).await;
    assert!(given_up.is_err(), "the statement is held back");
    drop(tx);
    let cancelled_twice = tokio::time::timeout(TIMEOUT, async {
        while proxy.accepted_connections() < before + 2 {
            tokio::task::yield_now().await;
        }
    });
    cancelled_twice
        .await
        .expect("the request is sent again while the statement has not ended");
    proxy.release();

    store.assert_complete().await;
    assert_eq!(observer.connections_that_wait().await, 0);
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let database = testing::postgres().await;
    let store = open(&database.url, 8, |config| {
        config.max_idle = Duration::from_millis(100);
    })
    .await
    .store;
    let units = [store.begin(Mode::Read).await, store.begin(Mode::Read).await];
    drop(units);
    let observer = database.observe().await;
    let closed = tokio::time::timeout(TIMEOUT, async { while observer.connections().await > 0 {} });
    closed.await.expect("idle connections are closed");
    let mut tx = store.begin(Mode::Auto).await.unwrap();
    assert_eq!(tx.count(&ITEMS, &Filter::all()).await.unwrap(), 0);
}
