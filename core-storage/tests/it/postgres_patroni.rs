//! A crash of the primary in a cluster of Patroni with synchronous replication. The cluster runs the files of the example in
//! `examples/server/packaging/cluster/postgres`.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use core_storage::conformance::{ITEMS, TABLES, item};
use core_storage::postgres::{self, PostgresConfig};
use core_storage::testing::{self, PatroniCluster};
use core_storage::{Filter, RowStore};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};
use tokio_postgres::NoTls;

/// A timeout that only a hanging test reaches.
const TIMEOUT: Duration = Duration::from_secs(120);
const DEPLOYMENT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../examples/server/packaging/cluster/postgres"
);
/// The number of concurrent writers.
const WRITERS: usize = 4;
/// The number of acknowledged writes before the crash, and after it.
const WRITES: usize = 200;

async fn add(store: &Arc<dyn RowStore>, id: &str) -> Result<(), StoreError> {
    let mut tx = store.begin(Mode::Write).await?;
    tx.insert(&ITEMS, item("patroni", id, 0)).await?;
    tx.commit().await
}

/// Adds rows, one after the other, whatever happens. Reports those that were acknowledged.
async fn write(
    store: Arc<dyn RowStore>,
    writer: usize,
    acknowledged: Arc<watch::Sender<BTreeSet<String>>>,
) {
    // The pace of the load.
    let mut pauses = interval(Duration::from_millis(5));
    for number in 0.. {
        pauses.tick().await;
        let id = format!("{writer}-{number}");
        if add(&store, &id).await.is_ok() {
            acknowledged.send_modify(|ids| {
                ids.insert(id);
            });
        }
    }
}

/// Returns those ids that the table on the server does not contain.
async fn lost_writes(url: &str, ids: &BTreeSet<String>) -> Vec<String> {
    let client = testing::connect(url).await;
    let rows = client.query("SELECT id FROM conformance_items", &[]).await;
    let stored = rows.expect("the table exists");
    let stored: BTreeSet<String> = stored.iter().map(|row| row.get(0)).collect();
    let absent = ids.iter();
    let absent = absent.filter(|id| !stored.contains(&format!("patroni-{id}")));
    absent.cloned().collect()
}

/// Waits until a server accepts connections.
async fn reach(url: String) {
    let mut pauses = interval(Duration::from_millis(50));
    while tokio_postgres::connect(&url, NoTls).await.is_err() {
        pauses.tick().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_of_the_primary_loses_no_acknowledged_write_and_writes_go_on_postgres() {
    let cluster = PatroniCluster::start(Path::new(DEPLOYMENT)).await;
    let roles = async {
        (
            cluster.wait_for("primary").await,
            cluster.wait_for("sync").await,
        )
    };
    let roles = timeout(TIMEOUT, roles).await;
    let (primary, standby) = roles.expect("the standby replicates synchronously");
    assert_ne!(primary, standby);
    let mut config = PostgresConfig::new(cluster.url(), [7; 32]);
    config.connections = 8;
    let store = postgres::rows(config, TABLES).await;
    let store = store.expect("the primary accepts writes");

    let (acknowledged, mut seen) = watch::channel(BTreeSet::new());
    let acknowledged = Arc::new(acknowledged);
    let mut writers = JoinSet::new();
    for writer in 0..WRITERS {
        writers.spawn(write(store.clone(), writer, acknowledged.clone()));
    }
    seen.wait_for(|ids| ids.len() >= WRITES).await.unwrap();
    cluster.kill(primary).await;
    let before = seen.borrow().clone();

    // The writers go on by themselves.
    let resumed = timeout(
        TIMEOUT,
        seen.wait_for(|ids| ids.len() >= before.len() + WRITES),
    )
    .await;
    drop(resumed.expect("writes go on").unwrap());
    writers.shutdown().await;
    let promoted = timeout(TIMEOUT, cluster.wait_for("primary")).await;
    assert_eq!(promoted.expect("a node is the primary"), standby);
    let all = seen.borrow().clone();
    let lost = lost_writes(&cluster.url_of(standby), &all).await;
    assert!(lost.is_empty(), "{} of {}: {lost:?}", lost.len(), all.len());

    // HAProxy leads to the promoted node after its next check.
    let reached = timeout(TIMEOUT, reach(cluster.url_through_haproxy())).await;
    reached.expect("HAProxy leads to the primary");
    let mut config = PostgresConfig::new(cluster.url_through_haproxy(), [7; 32]);
    config.connections = 2;
    let store = postgres::rows(config, TABLES).await;
    let store = store.expect("HAProxy leads to the primary");
    add(&store, "last")
        .await
        .expect("the primary accepts writes");
    let mut tx = store.begin(Mode::Auto).await.unwrap();
    let count = tx.count(&ITEMS, &Filter::all()).await.unwrap();
    assert!(count > u64::try_from(all.len()).unwrap());
}
