//! Every engine runs every case of the conformance suite, directly and behind another `dyn`.

#![expect(clippy::expect_used, reason = "helpers of tests may panic as tests do")]
#![cfg(all(feature = "conformance", feature = "sqlite", feature = "postgres"))]

use std::sync::Arc;

use core_domain::kernel::{ManualClock, Timestamp};
use core_domain::port::StoreError;
use core_storage::fault::FaultStore;
use core_storage::postgres::{self, PostgresConfig};
use core_storage::sqlite::{self, SqliteConfig};
use core_storage::testing::{self, TestDatabase};
use core_storage::{RecordStore, RowStore, conformance, memory};
use tempfile::TempDir;

const KEY: [u8; 32] = [7; 32];

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)))
}

fn sqlite_config(folder: &TempDir) -> SqliteConfig {
    let mut config = SqliteConfig::new(folder.path().join("core.db"), clock(), KEY);
    config.survive_power_cut = false;
    config
}

async fn sqlite_rows(folder: &TempDir) -> Arc<dyn RowStore> {
    let opened = sqlite::rows(sqlite_config(folder), conformance::TABLES).await;
    opened.expect("SQLite opens")
}

async fn postgres_rows(database: &TestDatabase) -> Arc<dyn RowStore> {
    let config = PostgresConfig::new(&*database.url, KEY);
    let opened = postgres::rows(config, conformance::TABLES).await;
    opened.expect("Postgres opens")
}

async fn everything(rows: Arc<dyn RowStore>) {
    conformance::run(rows.clone()).await;
    conformance::records(Arc::new(RecordStore::new(rows, KEY))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_keeps_the_contract() {
    everything(memory::rows(clock())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    everything(sqlite_rows(&folder).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_keeps_the_contract() {
    let database = testing::postgres().await;
    everything(postgres_rows(&database).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrapped_engine_keeps_the_contract() {
    let folder = tempfile::tempdir().unwrap();
    let database = testing::postgres().await;
    let inner = [
        memory::rows(clock()),
        sqlite_rows(&folder).await,
        postgres_rows(&database).await,
    ];
    for engine in inner {
        everything(Arc::new(FaultStore::new(engine))).await;
    }
}

#[tokio::test]
async fn sqlite_keeps_its_rows_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    conformance::restart(|| sqlite_rows(&folder)).await;
}

#[tokio::test]
async fn postgres_keeps_its_rows_over_a_restart() {
    let database = testing::postgres().await;
    conformance::restart(|| postgres_rows(&database)).await;
}

#[tokio::test]
async fn a_second_owner_of_a_sqlite_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let first = sqlite_rows(&folder).await;
    let second = sqlite::rows(sqlite_config(&folder), &[]).await;
    assert!(matches!(second, Err(StoreError::Unavailable(why)) if why.contains("in use")));
    drop(first);
    sqlite_rows(&folder).await;
}

#[tokio::test]
async fn processes_that_start_together_on_postgres_migrate_once() {
    let database = testing::postgres().await;
    let open = || postgres::rows(PostgresConfig::new(&*database.url, KEY), &[]);
    let (a, b, c) = tokio::join!(open(), open(), open());
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
}

#[tokio::test]
async fn an_injected_fault_ends_the_unit_and_changes_nothing() {
    use core_domain::port::Mode;
    use core_storage::Filter;
    for call in 1..=4 {
        let inner = memory::rows(clock());
        let store = FaultStore::new(inner.clone());
        store.fail_call(call);
        let work = async {
            let mut tx = store.begin(Mode::Write).await?;
            tx.now().await?;
            let all = Filter::all();
            tx.delete(&conformance::ITEMS, &all).await?;
            tx.commit().await
        };
        assert!(
            matches!(work.await, Err(StoreError::Unavailable(_))),
            "call {call}"
        );
        assert!(store.has_failed());
    }
}
