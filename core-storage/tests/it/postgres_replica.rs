//! Tests of lists that may be read from a standby of Postgres.

use std::sync::Arc;
use std::time::Duration;

use core_domain::port::Mode;
use core_storage::conformance::{ITEMS, TABLES, item};
use core_storage::postgres::{self, PostgresConfig, ReplicaConfig, measure_replica_lag};
use core_storage::testing::{self, DedicatedPostgres, Proxy};
use core_storage::{Filter, RowStore, RowTx};
use tokio::time::{interval, timeout};

/// A timeout that only a hanging test reaches.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The maximum staleness of a list.
const MAX_STALENESS: Duration = Duration::from_secs(1);

fn config(primary: &DedicatedPostgres, replica: String) -> PostgresConfig {
    let mut config = PostgresConfig::new(primary.url.clone(), [7; 32]);
    config.connections = 4;
    config.replica = Some(ReplicaConfig {
        url: replica,
        max_staleness: MAX_STALENESS,
    });
    config
}

async fn open(config: PostgresConfig) -> Arc<dyn RowStore> {
    let opened = postgres::rows(config, TABLES).await;
    opened.expect("Postgres opens")
}

async fn add(store: &Arc<dyn RowStore>, id: &str) {
    let mut tx = store.begin(Mode::Write).await.unwrap();
    tx.insert(&ITEMS, item("postgres", id, 0)).await.unwrap();
    tx.commit().await.unwrap();
}

/// Returns the number of items, and whether a standby counted them.
async fn count(store: &Arc<dyn RowStore>) -> (u64, bool) {
    let stale = store.begin_stale().await;
    let is_stale = stale.is_some();
    let mut tx: Box<dyn RowTx> = match stale {
        Some(tx) => tx,
        None => store.begin(Mode::Read).await.unwrap(),
    };
    (tx.count(&ITEMS, &Filter::all()).await.unwrap(), is_stale)
}

/// Counts until the result is this one.
async fn expect_count(store: &Arc<dyn RowStore>, expected: (u64, bool)) {
    let mut pause = interval(Duration::from_millis(20));
    let counted = timeout(TIMEOUT, async {
        while count(store).await != expected {
            pause.tick().await;
        }
    });
    assert!(counted.await.is_ok(), "{expected:?}");
}

#[tokio::test]
async fn lists_read_a_standby_only_while_it_is_near_enough_to_the_primary() {
    let primary = DedicatedPostgres::start().await;
    let store = open(config(&primary, primary.url.clone())).await;
    add(&store, "1").await;
    let not_a_standby = config(&primary, primary.url.clone());
    assert!(measure_replica_lag(not_a_standby).await.is_err());

    let standby = primary.start_standby().await;
    let config = config(&primary, standby.url.clone());
    let store = open(config.clone()).await;
    expect_count(&store, (1, true)).await;

    let on_standby = testing::connect(&standby.url).await;
    let run = async |text: &str| on_standby.batch_execute(text).await.unwrap();
    run("SELECT pg_wal_replay_pause()").await;
    add(&store, "2").await;
    // The standby stays behind, so after the maximum staleness only the primary counts.
    expect_count(&store, (2, false)).await;
    assert!(measure_replica_lag(config.clone()).await.unwrap() > Some(0));
    run("SELECT pg_wal_replay_resume()").await;
    expect_count(&store, (2, true)).await;
}

#[tokio::test]
async fn a_lost_standby_costs_lists_little_and_is_used_again_when_it_is_back() {
    let primary = DedicatedPostgres::start().await;
    drop(open(config(&primary, primary.url.clone())).await);
    let standby = primary.start_standby().await;
    let proxy = Proxy::start(&standby.url).await;
    let store = open(config(&primary, standby.url_through(&proxy))).await;
    expect_count(&store, (0, true)).await;
    proxy.swallow();
    let since = tokio::time::Instant::now();
    for _ in 0..20 {
        assert_eq!(count(&store).await, (0, false));
    }
    // Few of them wait for the standby: 20 would take 10 s.
    assert!(
        since.elapsed() < Duration::from_secs(8),
        "{:?}",
        since.elapsed()
    );
    add(&store, "1").await;
    proxy.forward_again();
    expect_count(&store, (1, true)).await;
}

#[tokio::test]
async fn a_promoted_standby_is_not_read() {
    let primary = DedicatedPostgres::start().await;
    drop(open(config(&primary, primary.url.clone())).await);
    let standby = primary.start_standby().await;
    let config = config(&primary, standby.url.clone());
    let store = open(config.clone()).await;
    expect_count(&store, (0, true)).await;
    let on_standby = testing::connect(&standby.url).await;
    on_standby
        .batch_execute("SELECT pg_promote()")
        .await
        .unwrap();
    add(&store, "1").await;
    expect_count(&store, (1, false)).await;
    assert!(measure_replica_lag(config).await.is_err());
}
