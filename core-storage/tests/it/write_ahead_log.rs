//! SQLite's write-ahead log must stay short, because every read searches all of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use core_domain::kernel::Timestamp;
use core_domain::port::Mode;
use core_domain::testing::ManualClock;
use core_storage::conformance::{ITEMS, TABLES, item};
use core_storage::sqlite::{self, SqliteConfig};
use core_storage::{Filter, Row, RowStore, RowTx, Select, Value};
use tokio::task::yield_now;

const MIB: u64 = 1024 * 1024;

fn large_item(id: &str) -> Row {
    let mut row = item("log", id, 0);
    let data = ITEMS.column_index("data").unwrap();
    row[data] = Value::text(&format!("\"{}\"", "x".repeat(8_000)));
    row
}

async fn reading(store: &Arc<dyn RowStore>) -> Box<dyn RowTx> {
    let mut tx = store.begin(Mode::Read).await.unwrap();
    let nothing = Select::of(&ITEMS).filter(Filter::eq("id", "nothing"));
    tx.select(&nothing, &mut |_| Ok(())).await.unwrap();
    tx
}

/// Runs short reads that overlap, so that some reader is active at any time.
async fn read_without_a_gap(store: Arc<dyn RowStore>, stop: Arc<AtomicBool>) {
    let mut held = reading(&store).await;
    while !stop.load(Ordering::SeqCst) {
        let next = reading(&store).await;
        held.rollback().await;
        held = next;
        yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_restarts_even_if_there_is_always_a_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("core.db");
    let clock = Arc::new(ManualClock::at(Timestamp::EPOCH));
    let config = SqliteConfig::new(&path, clock, [7; 32]);
    let store = sqlite::rows(config, TABLES).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let reader = tokio::spawn(read_without_a_gap(store.clone(), stop.clone()));
    for unit in 0..120 {
        let rows = (0..200).map(|row| large_item(&format!("{unit}-{row}")));
        let mut tx = store.begin(Mode::Write).await.unwrap();
        tx.insert_many(&ITEMS, rows.collect()).await.unwrap();
        tx.commit().await.unwrap();
    }
    stop.store(true, Ordering::SeqCst);
    reader.await.unwrap();
    let length = |name: &str| std::fs::metadata(folder.path().join(name)).unwrap().len() / MIB;
    let (database, log) = (length("core.db"), length("core.db-wal"));
    assert!(database > 120, "{database} MiB were copied");
    assert!(log < 96, "the log has {log} MiB");
}
