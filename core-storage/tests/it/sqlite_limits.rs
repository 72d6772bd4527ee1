//! Tests of the time limits of SQLite: how long a unit waits for its turn, and how long a read may take.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::Mode;
use core_domain::testing::ManualClock;
use core_storage::conformance::{self, ITEMS, item};
use core_storage::sqlite::{self, SqliteConfig};
use core_storage::{Filter, RowStore};

async fn open(path: &Path, change: fn(&mut SqliteConfig)) -> Arc<dyn RowStore> {
    let clock = Arc::new(ManualClock::at(Timestamp::EPOCH));
    let mut config = SqliteConfig::new(path.join("core.db"), clock, [7; 32]);
    change(&mut config);
    let opened = sqlite::rows(config, conformance::TABLES).await;
    opened.expect("SQLite opens")
}

#[tokio::test]
async fn a_unit_that_waits_too_long_for_its_turn_fails_and_does_not_block_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), |config| {
        config.acquire_timeout = Duration::from_millis(50);
        config.readers = 1;
    })
    .await;
    for mode in [Mode::Write, Mode::Read] {
        let held = store.begin(mode).await.unwrap();
        let late = store.begin(mode).await.map(drop).unwrap_err();
        assert!(matches!(late, StoreError::Unavailable(_)), "{late:?}");
        held.rollback().await;
        store.begin(mode).await.unwrap().rollback().await;
    }
}

/// Runs a very long read, which compares each of many rows 900 times.
async fn long_read(store: &dyn RowStore) -> Result<u64, StoreError> {
    let mut tx = store.begin(Mode::Auto).await?;
    let others = (0..900_i64).map(|n| Filter::ne("rank", n));
    tx.count(&ITEMS, &Filter::And(others.collect())).await
}

async fn open_filled(path: &Path, change: fn(&mut SqliteConfig)) -> Arc<dyn RowStore> {
    let store = open(path, change).await;
    for chunk in 0..20 {
        let mut tx = store.begin(Mode::Write).await.unwrap();
        let rows = (0..1_000).map(|n| item("group", &format!("{chunk}-{n}"), 1_000));
        tx.insert_many(&ITEMS, rows.collect()).await.unwrap();
        tx.commit().await.unwrap();
    }
    store
}

#[tokio::test]
async fn an_unlimited_read_is_interrupted_after_its_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_filled(folder.path(), |config| {
        config.read_timeout = Duration::from_millis(10);
        config.readers = 1;
    })
    .await;
    let interrupted = long_read(store.as_ref()).await.unwrap_err();
    let is_unavailable = matches!(interrupted, StoreError::Unavailable(_));
    assert!(is_unavailable, "{interrupted:?}");
    // The connection can still be used.
    let mut tx = store.begin(Mode::Auto).await.unwrap();
    let none = Filter::eq("id", "nobody");
    assert_eq!(tx.count(&ITEMS, &none).await.unwrap(), 0);
}

#[tokio::test]
async fn a_dropped_read_returns_its_connection_immediately() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_filled(folder.path(), |config| config.readers = 1).await;
    let begun = Instant::now();
    assert_eq!(long_read(store.as_ref()).await.unwrap(), 20_000);
    let took = begun.elapsed();
    let dropped = tokio::time::timeout(took / 10, long_read(store.as_ref())).await;
    dropped.unwrap_err();
    let begun = Instant::now();
    store.begin(Mode::Read).await.unwrap().rollback().await;
    assert!(
        begun.elapsed() < took / 2,
        "{:?} of {took:?}",
        begun.elapsed()
    );
}

#[test]
fn a_read_that_is_dropped_before_it_starts_is_ended() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let folder = tempfile::tempdir().unwrap();
    runtime.block_on(async {
        let store = open_filled(folder.path(), |config| config.readers = 1).await;
        let begun = Instant::now();
        assert_eq!(long_read(store.as_ref()).await.unwrap(), 20_000);
        let took = begun.elapsed();
        // The only thread for reads is busy, so the read has to wait.
        let (finish, wait) = std::sync::mpsc::channel::<()>();
        let busy = tokio::task::spawn_blocking(move || wait.recv());
        let waiting = tokio::time::timeout(Duration::from_millis(50), long_read(store.as_ref()));
        waiting.await.unwrap_err();
        let begun = Instant::now();
        finish.send(()).unwrap();
        busy.await.unwrap().unwrap();
        store.begin(Mode::Read).await.unwrap().rollback().await;
        let waited = begun.elapsed();
        assert!(waited < took / 2, "{waited:?} of {took:?}");
    });
}
