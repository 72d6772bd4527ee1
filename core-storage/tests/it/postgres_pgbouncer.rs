//! The Postgres engine through PgBouncer in transaction mode, with fewer server connections than the store has
//! connections.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::StoreError;
use core_domain::port::{JobHints, Mode};
use core_storage::conformance::{ITEMS, TABLES, item};
use core_storage::postgres::{self, Hints, PostgresConfig};
use core_storage::testing::cancelled::{PooledStore, lock_row, update_row};
use core_storage::testing::{self, IgnoredSettings, PgBouncer, TestDatabase};
use core_storage::{Filter, RecordStore, RowStore, conformance};
use tokio::task::JoinSet;
use tokio_postgres::SimpleQueryMessage;

const KEY: [u8; 32] = [7; 32];
/// A timeout that only a hanging test reaches.
const TIMEOUT: Duration = Duration::from_secs(60);
const MODES: [Mode; 4] = [Mode::Auto, Mode::Read, Mode::Write, Mode::ReadCommitted];

async fn with_pgbouncer(
    database: &TestDatabase,
    server_connections: usize,
) -> (PgBouncer, PostgresConfig) {
    let started = PgBouncer::start(database, server_connections, IgnoredSettings::Refused).await;
    let mut config = PostgresConfig::new(&*started.url, KEY);
    config.direct_url = Some(database.url.clone());
    (started, config)
}

async fn open(config: PostgresConfig) -> Arc<dyn RowStore> {
    let opened = postgres::rows(config, TABLES).await;
    opened.expect("the store opens through PgBouncer")
}

async fn count(store: &Arc<dyn RowStore>, mode: Mode) -> Result<u64, StoreError> {
    let mut tx = store.begin(mode).await?;
    tx.count(&ITEMS, &Filter::all()).await
}

async fn add(store: &Arc<dyn RowStore>, id: &str) -> Result<(), StoreError> {
    let mut tx = store.begin(Mode::Write).await?;
    tx.insert(&ITEMS, item("postgres", id, 0)).await?;
    tx.commit().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_through_pgbouncer_conforms() {
    let database = testing::postgres().await;
    let (_pgbouncer, config) = with_pgbouncer(&database, 6).await;
    let rows = open(config).await;
    conformance::run(rows.clone()).await;
    conformance::records(Arc::new(RecordStore::new(rows, KEY))).await;
}

#[tokio::test]
async fn postgres_through_pgbouncer_is_durable_over_a_restart() {
    let database = testing::postgres().await;
    let (_pgbouncer, config) = with_pgbouncer(&database, 2).await;
    conformance::restart(|| open(config.clone())).await;
}

/// Waits for the locked row, and abandons the request after a short time.
async fn wait_and_give_up(store: Arc<dyn RowStore>) {
    let mut tx = store.begin(Mode::ReadCommitted).await.unwrap();
    let update = update_row(tx.as_mut(), 1);
    let given_up = tokio::time::timeout(Duration::from_millis(3), update).await;
    assert!(given_up.is_err(), "the row is locked: {given_up:?}");
}

#[tokio::test]
async fn cancelled_requests_through_pgbouncer_leave_no_statement_running() {
    let database = testing::postgres().await;
    let (_pgbouncer, mut config) = with_pgbouncer(&database, 8).await;
    config.connections = 4;
    config.lock_timeout = TIMEOUT;
    config.statement_timeout = TIMEOUT;
    let store = open(config).await;
    let pool = PooledStore {
        store: store.clone(),
        connections: 4,
    };
    pool.add_row().await;
    let locker = lock_row(&database).await;
    let mut cancelled = JoinSet::new();
    for _ in 0..40 {
        cancelled.spawn(wait_and_give_up(store.clone()));
    }
    while let Some(ended) = cancelled.join_next().await {
        ended.expect("a request gets a connection");
    }
    pool.assert_complete().await;
    // The server ends a statement at its next check of the client.
    let observer = database.observe().await;
    let ended = async { while observer.connections_that_wait().await > 0 {} };
    let ended = tokio::time::timeout(TIMEOUT / 2, ended).await;
    ended.expect("no statement waits for the row any more");
    locker.execute("ROLLBACK").await.unwrap();
    pool.update_row(2).await;
}

/// Locks the table for readers and writers.
async fn lock_table(database: &TestDatabase) -> tokio_postgres::Client {
    let client = testing::connect(&database.url).await;
    let lock = "BEGIN; LOCK TABLE conformance_items IN ACCESS EXCLUSIVE MODE";
    client.batch_execute(lock).await.expect("the table is free");
    client
}

#[tokio::test]
async fn the_lock_timeout_holds_in_every_mode() {
    let database = testing::postgres().await;
    let (_pgbouncer, mut config) = with_pgbouncer(&database, 2).await;
    config.lock_timeout = Duration::from_millis(200);
    let store = open(config).await;
    let _locked = lock_table(&database).await;
    for mode in MODES {
        let waited = tokio::time::timeout(TIMEOUT, count(&store, mode)).await;
        let waited = waited.expect("the server ends the wait");
        assert!(matches!(waited, Err(StoreError::Retry(_))), "{waited:?}");
    }
}

#[tokio::test]
async fn the_statement_timeout_holds_in_every_mode() {
    let database = testing::postgres().await;
    let (_pgbouncer, mut config) = with_pgbouncer(&database, 2).await;
    config.lock_timeout = Duration::ZERO;
    config.statement_timeout = Duration::from_millis(200);
    config.reply_margin = TIMEOUT;
    let store = open(config).await;
    let _locked = lock_table(&database).await;
    for mode in MODES {
        let waited = tokio::time::timeout(TIMEOUT, count(&store, mode)).await;
        let waited = waited.expect("the server ends the statement");
        assert!(
            matches!(waited, Err(StoreError::Unavailable(_))),
            "{waited:?}"
        );
    }
}

#[tokio::test]
async fn an_idle_transaction_is_ended_by_the_server() {
    let database = testing::postgres().await;
    let (_pgbouncer, mut config) = with_pgbouncer(&database, 2).await;
    config.idle_timeout = Duration::from_millis(100);
    let store = open(config).await;
    let observer = database.observe().await;
    let mut tx = store.begin(Mode::Write).await.unwrap();
    tx.insert(&ITEMS, item("postgres", "1", 0)).await.unwrap();
    tx.count(&ITEMS, &Filter::all()).await.unwrap();
    let ended = async { while observer.connections_in_transaction().await > 0 {} };
    let ended = tokio::time::timeout(TIMEOUT, ended).await;
    ended.expect("the server ends the transaction");
    let failed = tx.commit().await;
    assert!(failed.is_err(), "{failed:?}");
    add(&store, "2").await.expect("the next unit works");
}

/// Returns the value of a setting on the one server connection of PgBouncer.
async fn setting(pgbouncer: &PgBouncer, name: &str) -> String {
    let client = testing::connect(&pgbouncer.url).await;
    let rows = client.simple_query(&format!("SHOW {name}")).await.unwrap();
    let mut values = rows.iter().filter_map(|row| match row {
        SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    values.next().expect("SHOW returns a row").to_owned()
}

#[tokio::test]
async fn no_setting_stays_on_a_server_connection() {
    let database = testing::postgres().await;
    let (pgbouncer, mut config) = with_pgbouncer(&database, 1).await;
    let names = ["statement_timeout", "lock_timeout", "search_path", "jit"];
    let mut before = Vec::new();
    for name in names {
        before.push(setting(&pgbouncer, name).await);
    }
    config.schema = Some("core_one".to_owned());
    let store = open(config).await;
    add(&store, "1").await.unwrap();
    for mode in MODES {
        assert_eq!(count(&store, mode).await.unwrap(), 1);
    }
    for (name, before) in names.into_iter().zip(before) {
        assert_eq!(setting(&pgbouncer, name).await, before, "{name}");
    }
}

#[tokio::test]
async fn stores_in_two_schemas_share_one_server_connection() {
    let database = testing::postgres().await;
    let (_pgbouncer, config) = with_pgbouncer(&database, 1).await;
    let mut stores = Vec::new();
    for schema in ["core_one", "core_two"] {
        let mut config = config.clone();
        config.schema = Some(schema.to_owned());
        stores.push(open(config).await);
    }
    add(&stores[0], "1").await.unwrap();
    for mode in MODES {
        assert_eq!(count(&stores[0], mode).await.unwrap(), 1);
        assert_eq!(count(&stores[1], mode).await.unwrap(), 0);
    }
}

#[tokio::test]
async fn hints_reach_other_processes_over_the_direct_address() {
    let database = testing::postgres().await;
    let (pgbouncer, config) = with_pgbouncer(&database, 1).await;
    let open = || Hints::open(&config, "core_test").expect("the URL is valid");
    let (one, other) = (open(), open());
    let hinted = async {
        // Returns after both have started to listen.
        one.wait_for_hint().await;
        other.wait_for_hint().await;
        drop(pgbouncer);
        one.notify().await;
        other.wait_for_hint().await;
    };
    let hinted = tokio::time::timeout(TIMEOUT, hinted).await;
    hinted.expect("a hint arrives without PgBouncer");
}

#[tokio::test]
async fn a_pooler_without_a_direct_address_is_refused() {
    let database = testing::postgres().await;
    for settings in [IgnoredSettings::Refused, IgnoredSettings::Ignored] {
        let started = PgBouncer::start(&database, 2, settings).await;
        let config = PostgresConfig::new(&*started.url, KEY);
        let refused = postgres::rows(config, TABLES).await.map(drop);
        let Err(StoreError::Backend(cause)) = refused else {
            panic!("{settings:?}: {refused:?}");
        };
        assert!(
            cause.to_string().contains("DATABASE_DIRECT_URL"),
            "{settings:?}: {cause}"
        );
    }
    let observer = testing::connect(&database.url).await;
    let tables = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'public'";
    let tables = observer.query_one(tables, &[]).await.unwrap();
    assert_eq!(tables.get::<_, i64>(0), 0, "nothing was migrated");
}
