//! Tests of the Postgres engine when the server or the network fails without closing connections.

use std::sync::Arc;
use std::time::{Duration, Instant};

use core_domain::kernel::StoreError;
use core_domain::port::{Mode, Store};
use core_storage::conformance::{ITEMS, TABLES, item};
use core_storage::postgres::{self, PostgresConfig};
use core_storage::testing::{self, DedicatedPostgres, Proxy, TestDatabase};
use core_storage::{Filter, ReadRow, RecordStore, RowStore, Select};

/// A timeout that only a hanging test reaches.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Longer than the timeout of a statement, and shorter than the timeouts of the operating system.
const LATE: Duration = Duration::from_secs(8);

fn config(url: String) -> PostgresConfig {
    let mut config = PostgresConfig::new(url, [7; 32]);
    config.connections = 4;
    config.statement_timeout = Duration::from_secs(1);
    config.reply_margin = Duration::from_millis(500);
    config.connect_timeout = Duration::from_millis(500);
    config
}

async fn open(config: PostgresConfig) -> Arc<dyn RowStore> {
    let opened = postgres::rows(config, TABLES).await;
    opened.expect("Postgres opens")
}

async fn count(store: &Arc<dyn RowStore>) -> Result<u64, StoreError> {
    let mut tx = store.begin(Mode::Auto).await?;
    tx.count(&ITEMS, &Filter::all()).await
}

async fn add(store: &Arc<dyn RowStore>, id: &str) -> Result<(), StoreError> {
    let mut tx = store.begin(Mode::Write).await?;
    tx.insert(&ITEMS, item("postgres", id, 0)).await?;
    tx.commit().await
}

/// Runs the work, which must end within [`LATE`].
async fn soon<T>(work: impl Future<Output = T>) -> T {
    let since = Instant::now();
    let ended = tokio::time::timeout(TIMEOUT, work).await;
    let ended = ended.expect("a lost server does not stop a request");
    assert!(since.elapsed() < LATE, "{:?}", since.elapsed());
    ended
}

async fn open_with_two_proxies(database: &TestDatabase) -> (Proxy, Proxy, Arc<dyn RowStore>) {
    let (first, second) = (
        Proxy::start(&database.url).await,
        Proxy::start(&database.url).await,
    );
    let store = open(config(database.url_through(&[&first, &second]))).await;
    assert_eq!(second.accepted_connections(), 0);
    (first, second, store)
}

#[tokio::test]
async fn requests_to_a_lost_host_fail_in_time_and_the_next_ones_reach_the_second_host() {
    let database = testing::postgres().await;
    let (first, second, store) = open_with_two_proxies(&database).await;
    add(&store, "1").await.unwrap();
    let mut open = store.begin(Mode::Write).await.unwrap();
    assert_eq!(open.count(&ITEMS, &Filter::all()).await.unwrap(), 1);
    let mut committing = store.begin(Mode::Write).await.unwrap();
    let row = item("postgres", "2", 0);
    committing.insert(&ITEMS, row).await.unwrap();
    // Opens one more connection, which stays idle.
    count(&store).await.unwrap();

    first.swallow();
    let all = Filter::all();
    let (read, committed, idle) =
        soon(async { tokio::join!(open.count(&ITEMS, &all), committing.commit(), count(&store)) })
            .await;
    assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
    assert!(
        matches!(committed, Err(StoreError::CommitUnknown(_))),
        "{committed:?}"
    );
    assert!(matches!(idle, Err(StoreError::Unavailable(_))), "{idle:?}");

    assert_eq!(soon(count(&store)).await.unwrap(), 1);
    assert!(second.accepted_connections() > 0);
    // From then on the second host is tried first.
    let tried = first.accepted_connections();
    let units = [store.begin(Mode::Read).await, store.begin(Mode::Read).await];
    assert!(units.iter().all(Result::is_ok));
    soon(add(&store, "3")).await.unwrap();
    assert_eq!(first.accepted_connections(), tried);
}

#[tokio::test]
async fn unresponsive_hosts_do_not_prevent_a_connection_to_the_last_host() {
    let database = testing::postgres().await;
    let mut proxies = Vec::new();
    for _ in 0..5 {
        proxies.push(Proxy::start(&database.url).await);
    }
    for silent in &proxies[..4] {
        silent.swallow();
    }
    let url = database.url_through(&proxies.iter().collect::<Vec<_>>());
    let separator = if url.contains('?') { '&' } else { '?' };
    let mut config = config(format!("{url}{separator}connect_timeout=60"));
    config.acquire_timeout = Duration::from_secs(2);
    let store = soon(open(config)).await;
    add(&store, "1").await.expect("the last host responds");
}

#[tokio::test]
async fn a_commit_whose_wait_for_a_standby_is_cancelled_has_an_unknown_outcome() {
    let server = DedicatedPostgres::start_with(&["synchronous_standby_names=standby"]).await;
    let client = testing::connect(&server.url).await;
    let run = async |text: &str| client.batch_execute(text).await.unwrap();
    run("SET synchronous_commit = local").await;
    run("ALTER ROLE core SET synchronous_commit = local").await;
    add(&open(config(server.url.clone())).await, "1")
        .await
        .unwrap();

    run("ALTER ROLE core RESET synchronous_commit").await;
    let mut config = config(server.url.clone());
    config.statement_timeout = TIMEOUT;
    let store = open(config).await;
    let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let cancelled = async {
        while client.query(cancel, &[]).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    let (unconfirmed, ()) = soon(async { tokio::join!(add(&store, "2"), cancelled) }).await;
    assert!(
        matches!(unconfirmed, Err(StoreError::CommitUnknown(_))),
        "{unconfirmed:?}"
    );
    // The next unit is not affected.
    assert_eq!(count(&store).await.unwrap(), 2);
}

#[tokio::test]
async fn a_check_of_a_lost_store_fails_within_two_seconds() {
    let database = testing::postgres().await;
    let proxy = Proxy::start(&database.url).await;
    let mut config = config(database.url_through(&[&proxy]));
    config.statement_timeout = Duration::from_secs(20);
    let store = RecordStore::new(open(config).await, [7; 32]);
    store.check().await.expect("the server is reachable");
    proxy.swallow();
    for _ in 0..2 {
        let since = Instant::now();
        let check = tokio::time::timeout(TIMEOUT, store.check()).await;
        let check = check.expect("a check ends");
        assert!(
            matches!(check, Err(StoreError::Unavailable(_))),
            "{check:?}"
        );
        assert!(since.elapsed() < Duration::from_secs(2));
    }
}

#[tokio::test]
async fn a_read_only_server_is_refused_unless_the_url_allows_it() {
    let database = testing::postgres().await;
    let mut store = open(config(database.url.clone())).await;
    add(&store, "1").await.unwrap();
    let other = testing::connect(&database.url).await;
    let set = |word: &str| {
        let change = "EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = ";
        format!("DO $$ BEGIN {change}{word}', current_database()); END $$")
    };
    other.batch_execute(&set("on")).await.unwrap();
    let read_only = PostgresConfig::new(&*database.url, [7; 32]);
    let refused = postgres::rows(read_only, TABLES).await.map(drop);
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    drop(store);

    let separator = if database.url.contains('?') { '&' } else { '?' };
    let any = format!("{}{separator}target_session_attrs=any", database.url);
    let set_back = set("off");
    other.batch_execute(&set_back).await.unwrap();
    store = open(config(any)).await;
    // A connection that finds the server read-only is not reused.
    other.batch_execute(&set("on")).await.unwrap();
    let units = [
        store.begin(Mode::Write).await,
        store.begin(Mode::Write).await,
    ];
    let [first, second] = units.map(Result::unwrap);
    drop((first, second));
    let mut refusals = 0;
    for id in ["2", "3", "4"] {
        refusals += u32::from(matches!(
            add(&store, id).await,
            Err(StoreError::Unavailable(_))
        ));
    }
    assert!(
        refusals > 0,
        "no connection was opened to a read-only server"
    );
    other.batch_execute(&set_back).await.unwrap();
    let added = add(&store, "5").await;
    added.expect("a new connection reaches a server that accepts writes");
}

#[tokio::test]
async fn a_read_whose_plan_a_migration_has_changed_runs_on_a_new_connection() {
    let database = testing::postgres().await;
    let store = open(config(database.url.clone())).await;
    add(&store, "1").await.unwrap();
    let other = testing::connect(&database.url).await;
    for kind in ["varchar", "text"] {
        let read = read(&store).await;
        assert_eq!(read.expect("a read runs"), 1);
        let change = format!("ALTER TABLE conformance_items ALTER COLUMN data TYPE {kind}");
        other.batch_execute(&change).await.unwrap();
    }
    assert_eq!(read(&store).await.expect("a read runs"), 1);
}

async fn read(store: &Arc<dyn RowStore>) -> Result<u32, StoreError> {
    let mut rows = 0;
    let mut visit = |_: &dyn ReadRow| {
        rows += 1;
        Ok(())
    };
    let mut tx = store.begin(Mode::Auto).await?;
    tx.select(&Select::of(&ITEMS).limit(10), &mut visit).await?;
    Ok(rows)
}
