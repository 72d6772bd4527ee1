//! Every engine passes the conformance suite, directly and wrapped.

use std::error::Error;
use std::sync::Arc;

use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::Mode;
use core_domain::testing::ManualClock;
use core_storage::fault::FaultStore;
use core_storage::postgres::{self, PostgresConfig, PostgresError};
use core_storage::sqlite::{self, SqliteConfig, Synchronous};
use core_storage::testing::{self, TestDatabase};
use core_storage::{Filter, RecordStore, RowStore, conformance, memory};
use tempfile::TempDir;

use crate::migrating::early_postgres;

const KEY: [u8; 32] = [7; 32];

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)))
}

fn sqlite_config(folder: &TempDir) -> SqliteConfig {
    let mut config = SqliteConfig::new(folder.path().join("core.db"), clock(), KEY);
    config.synchronous = Synchronous::Normal;
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

async fn conforms(rows: Arc<dyn RowStore>) {
    conformance::run(rows.clone()).await;
    conformance::records(Arc::new(RecordStore::new(rows, KEY))).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_conforms() {
    conforms(memory::rows(clock())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_conforms() {
    let folder = tempfile::tempdir().unwrap();
    conforms(sqlite_rows(&folder).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_conforms() {
    let database = testing::postgres().await;
    conforms(postgres_rows(&database).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_with_ids_as_text_conforms() {
    let (database, _) = early_postgres("0002").await;
    conforms(postgres_rows(&database).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrapped_engines_conform() {
    let folder = tempfile::tempdir().unwrap();
    let database = testing::postgres().await;
    let inner = [
        memory::rows(clock()),
        sqlite_rows(&folder).await,
        postgres_rows(&database).await,
    ];
    for engine in inner {
        conforms(Arc::new(FaultStore::new(engine))).await;
    }
}

#[tokio::test]
async fn sqlite_is_durable_over_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    conformance::restart(|| sqlite_rows(&folder)).await;
}

#[tokio::test]
async fn postgres_is_durable_over_a_restart() {
    let database = testing::postgres().await;
    conformance::restart(|| postgres_rows(&database)).await;
}

#[tokio::test]
async fn a_second_process_on_a_sqlite_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let first = sqlite_rows(&folder).await;
    let second = sqlite::rows(sqlite_config(&folder), &[]).await;
    assert!(
        matches!(second, Err(StoreError::Unavailable(cause)) if cause.to_string().contains("in use"))
    );
    drop(first);
    sqlite_rows(&folder).await;
}

#[tokio::test]
async fn concurrent_starts_on_postgres_migrate_once() {
    let database = testing::postgres().await;
    let open = || postgres::rows(PostgresConfig::new(&*database.url, KEY), &[]);
    let (a, b, c) = tokio::join!(open(), open(), open());
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
}

#[tokio::test]
async fn an_injected_fault_aborts_the_unit_and_leaves_the_outcome_unknown_only_in_commit() {
    for call in 1..=4 {
        let store = FaultStore::new(memory::rows(clock()));
        store.fail_call(call);
        let work = async {
            let mut tx = store.begin(Mode::Write).await?;
            tx.now().await?;
            tx.delete(&conformance::ITEMS, &Filter::all()).await?;
            tx.commit().await
        };
        let error = work.await.expect_err("a call fails");
        let expected = match call {
            4 => matches!(error, StoreError::CommitUnknown(_)),
            _ => matches!(error, StoreError::Unavailable(_)),
        };
        assert!(expected, "call {call}: {error}");
        assert_eq!(error.is_certainly_not_applied(), call < 4);
        assert!(store.has_failed());
    }
}

#[tokio::test]
async fn a_lost_connection_leaves_the_outcome_unknown_only_in_commit() {
    let database = testing::postgres().await;
    let store = postgres_rows(&database).await;
    for committing in [false, true] {
        let mut tx = store.begin(Mode::Write).await.expect("a unit begins");
        tx.delete(&conformance::ITEMS, &Filter::all())
            .await
            .expect("the connection works");
        database.end_connections().await;
        let error = if committing {
            tx.commit().await.expect_err("the reply is lost")
        } else {
            let counted = tx.count(&conformance::ITEMS, &Filter::all()).await;
            counted.expect_err("the connection is lost")
        };
        let expected = match committing {
            false => matches!(error, StoreError::Unavailable(_)),
            true => matches!(error, StoreError::CommitUnknown(_)),
        };
        assert!(expected, "{error}");
        assert_eq!(error.is_certainly_not_applied(), !committing);
        assert!(
            error
                .source()
                .is_some_and(|cause| cause.is::<PostgresError>())
        );
    }
}
