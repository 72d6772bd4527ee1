//! Databases that are opened for reading while another process writes.

use std::sync::Arc;

use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::{Mode, Store};
use core_domain::testing::ManualClock;
use core_storage::postgres::{self, PostgresConfig};
use core_storage::sqlite::rusqlite::Connection;
use core_storage::sqlite::{self, SqliteConfig};
use core_storage::testing;

const KEY: [u8; 32] = [7; 32];

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::EPOCH))
}

/// Asserts that the store has read units only.
async fn assert_only_reads(store: &dyn Store) {
    for mode in [Mode::Auto, Mode::Read] {
        store.begin(mode).await.unwrap().now().await.unwrap();
    }
    for mode in [Mode::Write, Mode::ReadCommitted] {
        let refused = store.begin(mode).await.map(drop).unwrap_err();
        assert!(matches!(refused, StoreError::Backend(_)), "{refused:?}");
    }
}

#[tokio::test]
async fn a_sqlite_file_can_be_read_while_it_is_open() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("core.db");
    let config = || SqliteConfig::new(&path, clock(), KEY);
    let missing = sqlite::open_read_only(config()).await.map(drop);
    assert!(
        matches!(missing, Err(StoreError::Unavailable(_))),
        "{missing:?}"
    );
    assert!(!path.exists());

    let writer = sqlite::open(config()).await.unwrap();
    assert_only_reads(sqlite::open_read_only(config()).await.unwrap().as_ref()).await;
    drop(writer);
    assert_only_reads(sqlite::open_read_only(config()).await.unwrap().as_ref()).await;
}

#[tokio::test]
async fn a_sqlite_file_of_an_older_version_is_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("core.db");
    drop(
        sqlite::open(SqliteConfig::new(&path, clock(), KEY))
            .await
            .unwrap(),
    );
    let file = Connection::open(&path).unwrap();
    let newest =
        "DELETE FROM schema_migrations WHERE name = (SELECT max(name) FROM schema_migrations)";
    assert_eq!(file.execute(newest, []).unwrap(), 1);
    drop(file);
    let refused = sqlite::open_read_only(SqliteConfig::new(&path, clock(), KEY)).await;
    assert!(
        matches!(refused, Err(StoreError::Backend(_))),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_postgres_database_is_read_only_with_its_schema() {
    let database = testing::postgres().await;
    let config = || PostgresConfig::new(&database.url, KEY);
    let empty = postgres::open_read_only(config()).await;
    assert!(matches!(empty, Err(StoreError::Backend(_))), "{empty:?}");
    let _writer = postgres::open(config()).await.unwrap();
    assert_only_reads(postgres::open_read_only(config()).await.unwrap().as_ref()).await;
}
