//! Requests that are cancelled while one of their statements runs. Every engine that uses a pool of Postgres connections
//! must pass these checks.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a check fails by panicking"
)]

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use tokio::task::JoinSet;

use super::{Observer, TestDatabase};
use crate::conformance::{ITEMS, item};
use crate::{Filter, RowStore, RowTx, Value};

/// A timeout that only a hanging test reaches.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A store on a pool of connections to the database of a test. It has the table [`ITEMS`], and no row.
#[derive(Clone)]
pub struct PooledStore {
    /// The store.
    pub store: Arc<dyn RowStore>,
    /// The maximum number of connections of the pool.
    pub connections: usize,
}

impl std::fmt::Debug for PooledStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PooledStore")
            .field("connections", &self.connections)
            .finish_non_exhaustive()
    }
}

impl PooledStore {
    /// Checks that cancelled requests leave no statement running, and every connection of the pool usable. At most
    /// `most` connections may exist at any time.
    ///
    /// # Panics
    /// If the engine fails the check.
    pub async fn check_cancelled_requests(
        &self,
        database: &TestDatabase,
        requests: usize,
        most: usize,
    ) {
        self.add_row().await;
        let locker = lock_row(database).await;
        let observer = database.observe().await;

        let mut cancelled = JoinSet::new();
        for _ in 0..requests {
            cancelled.spawn(wait_and_give_up(self.store.clone()));
        }
        let mut seen = 0;
        let ended = tokio::time::timeout(TIMEOUT, async {
            while let Some(ended) = cancelled.join_next().await {
                ended.expect("a request gets a connection");
                if cancelled.len().is_multiple_of(10) {
                    seen = seen.max(observer.connections().await);
                }
            }
        });
        ended.await.expect("every request ends soon");
        assert!(seen <= most, "{seen} connections");

        self.assert_complete().await;
        assert_eq!(observer.connections_that_wait().await, 0);
        locker.execute("ROLLBACK").await.unwrap();
        self.update_row(2).await;
    }

    /// Checks that a request that is cancelled during a short statement returns its connection and changes nothing.
    ///
    /// # Panics
    /// If the engine fails the check.
    pub async fn check_cancelled_inserts(&self, database: &TestDatabase) {
        let observer = database.observe().await;
        for id in 0..100 {
            let mut tx = self.store.begin(Mode::Write).await.unwrap();
            let insert = tx.insert(&ITEMS, item("cancelled", &id.to_string(), 0));
            // The statement is sent, and its reply is not awaited.
            let given_up = tokio::time::timeout(Duration::ZERO, insert).await;
            drop(given_up);
            drop(tx);
            let connections = observer.connections().await;
            assert!(connections <= self.connections + 1, "{connections}");
        }
        let mut tx = self.store.begin(Mode::Read).await.unwrap();
        assert_eq!(tx.count(&ITEMS, &Filter::all()).await.unwrap(), 0);
    }

    /// Waits until every connection of the pool is free. A connection is free once its work has ended.
    ///
    /// # Panics
    /// If a connection does not become free, or if there is not exactly one row.
    pub async fn assert_complete(&self) {
        let (mut units, all) = (Vec::new(), Filter::all());
        for _ in 0..self.connections {
            let mut unit = self.store.begin(Mode::Read).await.unwrap();
            let read = tokio::time::timeout(TIMEOUT, unit.count(&ITEMS, &all));
            assert_eq!(read.await.expect("the pool is complete").unwrap(), 1);
            units.push(unit);
        }
    }

    /// Adds the row that [`lock_row`] locks.
    ///
    /// # Panics
    /// If the store fails.
    pub async fn add_row(&self) {
        let mut tx = self.store.begin(Mode::Write).await.unwrap();
        tx.insert(&ITEMS, item("cancelled", "1", 0)).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Changes the rank of that row.
    ///
    /// # Panics
    /// If the store fails.
    pub async fn update_row(&self, rank: i64) {
        let mut tx = self.store.begin(Mode::ReadCommitted).await.unwrap();
        assert_eq!(update_row(tx.as_mut(), rank).await.unwrap(), 1);
        tx.commit().await.unwrap();
    }
}

/// Changes the rank of the row of [`PooledStore::add_row`]. Returns the number of changed rows.
///
/// # Errors
/// The error of the store.
pub async fn update_row(tx: &mut dyn RowTx, rank: i64) -> Result<u64, StoreError> {
    let by_key = Filter::eq("id", "cancelled-1");
    tx.update(&ITEMS, &by_key, &[("rank", Value::Int(rank))])
        .await
}

/// Locks that row on a separate connection.
///
/// # Panics
/// If the server does not respond.
pub async fn lock_row(database: &TestDatabase) -> Observer {
    let locker = database.observe().await;
    let lock = "BEGIN; SELECT 1 FROM conformance_items FOR UPDATE";
    locker.execute(lock).await.unwrap();
    locker
}

/// Waits for the locked row, and cancels after a short time.
async fn wait_and_give_up(store: Arc<dyn RowStore>) {
    let mut tx = store.begin(Mode::ReadCommitted).await.unwrap();
    let update = update_row(tx.as_mut(), 1);
    let given_up = tokio::time::timeout(Duration::from_millis(3), update).await;
    assert!(given_up.is_err(), "the row is locked: {given_up:?}");
}
