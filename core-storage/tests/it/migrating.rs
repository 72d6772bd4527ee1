//! How migrations run on a database that is in use, or that an earlier version has created.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use core_domain::kernel::{StoreError, Timestamp};
use core_domain::testing::ManualClock;
use core_storage::postgres::{self, PostgresConfig};
use core_storage::sql::ddl::Dialect;
use core_storage::sql::migrations::{self, MigrationEvent, MigrationOptions, PendingMigration};
use core_storage::sqlite::{self, SqliteConfig};
use core_storage::testing::{self, TestDatabase, postgres_schema};
use rusqlite::Connection as Sqlite;
use tokio::sync::mpsc;
use tokio_postgres::Client;

const KEY: [u8; 32] = [7; 32];

/// The table of migrations of early servers, which recorded no releases.
const EARLY_TABLE: &str =
    "CREATE TABLE schema_migrations (name TEXT NOT NULL PRIMARY KEY, checksum TEXT NOT NULL)";

fn migrations_before(name: &str, dialect: Dialect) -> Vec<PendingMigration> {
    let all = migrations::pending(&[], dialect).unwrap().into_iter();
    all.take_while(|migration| migration.name < name).collect()
}

fn early_record(migration: &PendingMigration) -> String {
    let (name, checksum) = (migration.name, &migration.checksum);
    format!("INSERT INTO schema_migrations VALUES ('{name}', '{checksum}')")
}

/// Creates a database that an early server has migrated, up to the migration before `name`.
pub(crate) async fn early_postgres(name: &str) -> (TestDatabase, Client) {
    let database = testing::postgres().await;
    let client = testing::connect(&database.url).await;
    client.batch_execute(EARLY_TABLE).await.unwrap();
    for migration in migrations_before(name, Dialect::Postgres) {
        client.batch_execute(migration.text).await.unwrap();
        let record = early_record(&migration);
        client.batch_execute(&record).await.unwrap();
    }
    (database, client)
}

async fn open(url: &str, options: MigrationOptions) -> Result<(), StoreError> {
    let mut config = PostgresConfig::new(url, KEY);
    config.migrations = options;
    postgres::open(config).await.map(drop)
}

async fn read_migrations(client: &Client) -> Vec<(String, Option<String>)> {
    let read = "SELECT name, release FROM schema_migrations ORDER BY name";
    let rows = client.query(read, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

fn names(rows: &[(String, Option<String>)]) -> Vec<&str> {
    rows.iter().map(|(name, _)| name.as_str()).collect()
}

fn all_names() -> Vec<&'static str> {
    let all = migrations::pending(&[], Dialect::Postgres).unwrap();
    all.iter().map(|migration| migration.name).collect()
}

#[tokio::test]
async fn a_database_of_an_early_server_gets_the_schema_of_a_new_one_but_stores_ids_as_text() {
    let (early, client) = early_postgres("0002").await;
    open(&early.url, MigrationOptions::default()).await.unwrap();
    let rows = read_migrations(&client).await;
    assert_eq!(names(&rows), all_names());
    assert_eq!(
        rows[0].1, None,
        "nobody knows the release of an early server"
    );
    assert!(rows[1..].iter().all(|(_, release)| release.is_some()));
    let new = testing::postgres().await;
    open(&new.url, MigrationOptions::default()).await.unwrap();
    let new = testing::connect(&new.url).await;
    let as_text = |line: String| match line.contains(" uuid null=") {
        true => line.replace(" uuid null=", " text null=") + "C",
        false => line,
    };
    let schema = postgres_schema(&new).await.unwrap();
    let uuids = schema.iter().filter(|line| line.contains(" uuid null="));
    assert!(uuids.count() > 100);
    let schema = schema.into_iter().map(as_text).collect();
    assert_eq!(postgres_schema(&client).await.unwrap(), schema);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_start_together_build_an_index_once() {
    let (database, client) = early_postgres("0004").await;
    let built = Arc::new(Mutex::new(0));
    let counter = Arc::clone(&built);
    let options = MigrationOptions {
        listener: Some(Arc::new(move |event| {
            if matches!(event, MigrationEvent::Ran("0004_history")) {
                *counter.lock().unwrap() += 1;
            }
        })),
        ..MigrationOptions::default()
    };
    let start = || open(&database.url, options.clone());
    let (first, second, third) = tokio::join!(start(), start(), start());
    first.and(second).and(third).unwrap();
    assert_eq!(names(&read_migrations(&client).await), all_names());
    assert_eq!(*built.lock().unwrap(), 1);
}

#[tokio::test]
async fn an_interrupted_build_of_an_index_is_repeated() {
    let (database, client) = early_postgres("0004").await;
    // A build that fails leaves an invalid index behind, as an interrupted one does.
    let insert = "INSERT INTO lifecycle_records (id, platform_id, to_status, triggered_by, trigger_type, metadata, \
         created_at, row_version) VALUES ('a', 'p', 's', 't', 'u', '{}', 1, 1), ('b', 'p', 's', 't', 'u', '{}', 1, 1)";
    client.batch_execute(insert).await.unwrap();
    let fails = "CREATE UNIQUE INDEX CONCURRENTLY lifecycle_records_by_created_at ON lifecycle_records (created_at)";
    assert!(client.batch_execute(fails).await.is_err());
    let is_valid = "SELECT i.indisvalid FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid \
         WHERE c.relname = 'lifecycle_records_by_created_at'";
    let valid = async || -> bool { client.query_one(is_valid, &[]).await.unwrap().get(0) };
    assert!(!valid().await);
    open(&database.url, MigrationOptions::default())
        .await
        .unwrap();
    assert!(valid().await);
}

#[tokio::test]
async fn a_migration_that_waits_for_a_table_lets_others_use_it_and_runs_later() {
    let (database, mut reader) = early_postgres("0002").await;
    let others = testing::connect(&database.url).await;
    let (sender, mut events) = mpsc::unbounded_channel();
    let options = MigrationOptions {
        lock_timeout: Duration::from_millis(100),
        listener: Some(Arc::new(move |event| {
            let _ = sender.send(event.clone());
        })),
        ..MigrationOptions::default()
    };
    // A long read of a table that the second migration changes.
    let reading = reader.transaction().await.unwrap();
    let read = "SELECT count(*) FROM deployments";
    reading.query_one(read, &[]).await.unwrap();
    let url = database.url.clone();
    let migrating = tokio::spawn(async move { open(&url, options).await });
    let event = events.recv().await.unwrap();
    assert!(matches!(event, MigrationEvent::Waits(_)), "{event:?}");
    // The migration pauses, so a request behind it is not blocked.
    others.query_one(read, &[]).await.unwrap();
    assert!(!migrating.is_finished());
    reading.commit().await.unwrap();
    migrating.await.unwrap().unwrap();
    assert_eq!(names(&read_migrations(&others).await), all_names());
}

#[tokio::test]
async fn a_server_that_may_not_migrate_refuses_a_database_with_pending_migrations() {
    let (database, client) = early_postgres("0004").await;
    let never = MigrationOptions {
        at_open: false,
        ..MigrationOptions::default()
    };
    let refused = open(&database.url, never.clone()).await.unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("0004_history") && text.contains("migrate --apply"),
        "{text}"
    );
    assert_eq!(
        client
            .query("SELECT * FROM schema_migrations", &[])
            .await
            .unwrap()
            .len(),
        3
    );
    open(&database.url, MigrationOptions::default())
        .await
        .unwrap();
    open(&database.url, never).await.unwrap();
}

#[tokio::test]
async fn a_server_starts_on_a_database_of_a_later_release_unless_it_needs_what_was_removed() {
    let database = testing::postgres().await;
    let client = testing::connect(&database.url).await;
    open(&database.url, MigrationOptions::default())
        .await
        .unwrap();
    let expansion = "INSERT INTO schema_migrations VALUES ('9001_later', 'x', '999.0.0', NULL)";
    client.batch_execute(expansion).await.unwrap();
    open(&database.url, MigrationOptions::default())
        .await
        .unwrap();
    let contraction =
        "INSERT INTO schema_migrations VALUES ('9002_later', 'x', '999.1.0', '999.0.0')";
    client.batch_execute(contraction).await.unwrap();
    let refused = open(&database.url, MigrationOptions::default())
        .await
        .unwrap_err();
    let text = refused.to_string();
    assert!(
        text.contains("9002_later") && text.contains("999.0.0"),
        "{text}"
    );
}

#[tokio::test]
async fn a_sqlite_file_of_an_early_server_gets_the_other_migrations_unless_the_server_may_not_migrate()
 {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("early.db");
    let early = Sqlite::open(&path).unwrap();
    early.execute_batch(EARLY_TABLE).unwrap();
    for migration in migrations_before("0002", Dialect::Sqlite) {
        early.execute_batch(migration.text).unwrap();
        early.execute_batch(&early_record(&migration)).unwrap();
    }
    let clock = Arc::new(ManualClock::at(Timestamp::EPOCH));
    let config = |at_open| {
        let mut config = SqliteConfig::new(&path, clock.clone(), KEY);
        config.migrations.at_open = at_open;
        config
    };
    let refused = sqlite::open(config(false)).await.unwrap_err().to_string();
    assert!(refused.contains("0002_deploy_path"), "{refused}");
    drop(sqlite::open(config(true)).await.unwrap());
    drop(sqlite::open(config(false)).await.unwrap());
    let count = "SELECT count(*), count(release) FROM schema_migrations";
    let (all, with_release): (i64, i64) = early
        .query_row(count, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    let expected = i64::try_from(all_names().len()).unwrap();
    assert_eq!((all, with_release), (expected, expected - 1));
}
