//! Tests of prepared units of work on Postgres: which connections end them, and after which failures.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use core_storage::conformance::{ITEMS, TABLES, item};
use core_storage::postgres::{self, PostgresConfig};
use core_storage::testing::cancelled::{PooledStore, update_row};
use core_storage::testing::{self, DedicatedPostgres, IgnoredSettings, PgBouncer, Proxy};
use core_storage::{Filter, RowStore, UnitEnd};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// A timeout that only a hanging test reaches.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Longer than the attempts to end a unit.
const LATE: Duration = Duration::from_secs(8);

fn config(url: &str) -> PostgresConfig {
    PostgresConfig::new(url, [7; 32])
}

async fn open(config: PostgresConfig) -> Arc<dyn RowStore> {
    postgres::rows(config, TABLES).await.unwrap()
}

/// Returns a name for a prepared unit that no other database of the server uses.
fn name_for(url: &str) -> String {
    let database = url.rsplit('/').next().unwrap_or_default();
    format!("core:{database}:1")
}

/// Prepares a unit that inserts a row.
async fn prepare(store: &Arc<dyn RowStore>, name: &str) -> Result<(), StoreError> {
    let mut tx = store.begin(Mode::Write).await?;
    tx.insert(&ITEMS, item("prepared", "1", 0)).await?;
    tx.prepare(name).await
}

async fn names(store: &Arc<dyn RowStore>, prefix: &str) -> Result<Vec<String>, StoreError> {
    let units = store.prepared_units(prefix).await?;
    Ok(units.into_iter().map(|unit| unit.name).collect())
}

async fn count(store: &Arc<dyn RowStore>) -> Result<u64, StoreError> {
    let mut tx = store.begin(Mode::Auto).await?;
    tx.count(&ITEMS, &Filter::all()).await
}

/// Changes the row of [`PooledStore::add_row`].
async fn change(store: Arc<dyn RowStore>) -> Result<(), StoreError> {
    let mut tx = store.begin(Mode::ReadCommitted).await?;
    update_row(tx.as_mut(), 2).await?;
    tx.commit().await
}

#[tokio::test]
async fn a_prepared_unit_ends_while_units_that_wait_for_its_locks_occupy_every_connection() {
    let database = testing::postgres().await;
    let mut config = config(&database.url);
    config.connections = 2;
    config.acquire_timeout = Duration::from_secs(2);
    config.lock_timeout = TIMEOUT;
    config.statement_timeout = TIMEOUT;
    let pool = PooledStore {
        store: open(config).await,
        connections: 2,
    };
    pool.add_row().await;
    let (store, name) = (pool.store, name_for(&database.url));
    let mut tx = store.begin(Mode::ReadCommitted).await.unwrap();
    update_row(tx.as_mut(), 1).await.unwrap();
    tx.prepare(&name).await.unwrap();

    let mut changes = JoinSet::new();
    for _ in 0..2 {
        changes.spawn(change(store.clone()));
    }
    let observer = database.observe().await;
    let waiting = async { while observer.connections_that_wait().await < 2 {} };
    timeout(TIMEOUT, waiting).await.unwrap();

    assert_eq!(names(&store, &name).await.unwrap(), [&*name]);
    store.end_prepared(&name, UnitEnd::Commit).await.unwrap();
    while let Some(changed) = changes.join_next().await {
        changed.unwrap().unwrap();
    }
    assert_eq!(names(&store, &name).await.unwrap(), [""; 0]);
}

#[tokio::test]
async fn prepared_units_are_read_and_ended_over_the_direct_address() {
    let database = testing::postgres().await;
    let pgbouncer = PgBouncer::start(&database, 1, IgnoredSettings::Refused).await;
    let mut config = config(&pgbouncer.url);
    config.direct_url = Some(database.url.clone());
    let (store, name) = (open(config).await, name_for(&database.url));
    prepare(&store, &name).await.unwrap();
    // The transaction occupies the only server connection of the pooler.
    let mut tx = store.begin(Mode::Write).await.unwrap();
    tx.insert(&ITEMS, item("prepared", "2", 0)).await.unwrap();
    let ended = timeout(LATE, async {
        assert_eq!(names(&store, &name).await.unwrap(), [&*name]);
        store.end_prepared(&name, UnitEnd::Commit).await.unwrap();
    });
    ended.await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(count(&store).await.unwrap(), 2);
}

#[tokio::test]
async fn the_preparation_and_the_end_of_a_unit_fail_if_the_wait_for_a_standby_is_cancelled() {
    let server = DedicatedPostgres::start_with(&["synchronous_standby_names=standby"]).await;
    let client = testing::connect(&server.url).await;
    let run = async |text: &str| client.batch_execute(text).await.unwrap();
    run("SET synchronous_commit = local").await;
    run("ALTER ROLE core SET synchronous_commit = local").await;
    drop(open(config(&server.url)).await);
    run("ALTER ROLE core RESET synchronous_commit").await;

    let mut config = config(&server.url);
    config.statement_timeout = TIMEOUT;
    let store = open(config).await;
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let cancel = async || {
        let cancelled = async {
            while client.query(cancel, &[]).await.unwrap().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        timeout(TIMEOUT, cancelled).await.unwrap();
    };
    let (prepared, ()) = tokio::join!(prepare(&store, "core:1"), cancel());
    assert!(
        matches!(prepared, Err(StoreError::Unavailable(_))),
        "{prepared:?}"
    );
    assert_eq!(names(&store, "core:").await.unwrap(), ["core:1"]);
    let end = store.end_prepared("core:1", UnitEnd::Commit);
    let (ended, ()) = tokio::join!(end, cancel());
    assert!(
        matches!(ended, Err(StoreError::CommitUnknown(_))),
        "{ended:?}"
    );
    // The next call on the connection is not affected.
    let again = store.end_prepared("core:1", UnitEnd::Commit).await;
    again.unwrap();
    assert_eq!(count(&store).await.unwrap(), 1);
}

#[tokio::test]
async fn prepared_units_are_read_and_ended_after_the_idle_connections_were_lost() {
    let database = testing::postgres().await;
    let (store, name) = (open(config(&database.url)).await, name_for(&database.url));
    prepare(&store, &name).await.unwrap();
    for _ in 0..2 {
        assert_eq!(names(&store, &name).await.unwrap(), [&*name]);
        database.end_connections().await;
    }
    store.end_prepared(&name, UnitEnd::Commit).await.unwrap();
    assert_eq!(count(&store).await.unwrap(), 1);
}

/// Forwards connections from the address to the server of the URL.
async fn forward(from: SocketAddr, url: &str) {
    let server = url.rsplit(['@', '/']).nth(1).unwrap_or_default();
    let listener = TcpListener::bind(from).await.unwrap();
    let mut connections = JoinSet::new();
    loop {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut server = TcpStream::connect(server).await.unwrap();
        connections.spawn(async move {
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        });
    }
}

#[tokio::test]
async fn the_end_of_a_unit_awaits_a_server_that_is_back_soon() {
    let database = testing::postgres().await;
    let proxy = Proxy::start(&database.url).await;
    let (address, name) = (proxy.address, name_for(&database.url));
    let store = open(config(&database.url_through(&[&proxy]))).await;
    prepare(&store, &name).await.unwrap();
    names(&store, &name).await.unwrap();
    drop(proxy);

    let since = Instant::now();
    let ended = store.end_prepared(&name, UnitEnd::Commit).await;
    assert!(ended.is_err(), "{ended:?}");
    assert!(since.elapsed() < LATE, "{:?}", since.elapsed());
    // A read does not wait for a server that refuses connections.
    let since = Instant::now();
    let read = names(&store, &name).await;
    assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
    assert!(since.elapsed() < Duration::from_secs(2));

    let back = async {
        sleep(Duration::from_millis(300)).await;
        forward(address, &database.url).await;
    };
    tokio::select! {
        () = back => {}
        ended = store.end_prepared(&name, UnitEnd::Commit) => ended.unwrap(),
    }
    let direct = testing::connect(&database.url).await;
    let rows = direct.query_one("SELECT COUNT(*) FROM conformance_items", &[]);
    assert_eq!(rows.await.unwrap().get::<_, i64>(0), 1);
}
