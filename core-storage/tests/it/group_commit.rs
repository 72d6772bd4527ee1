//! SQLite commits units in groups. Each unit is acknowledged after its commit is durable, and not before.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::Mode;
use core_domain::testing::ManualClock;
use core_storage::conformance::{self, ITEMS, item};
use core_storage::sql::ddl::{Dialect, create};
use core_storage::sqlite::{self, SqliteConfig};
use core_storage::{ReadRow, Row, RowStore, RowTx, Select, Value};
use tokio::task::{JoinHandle, yield_now};

const FILE: &str = "core.db";

async fn open(path: &Path) -> Arc<dyn RowStore> {
    let clock = Arc::new(ManualClock::at(Timestamp::EPOCH));
    let config = SqliteConfig::new(path, clock, [7; 32]);
    let opened = sqlite::rows(config, conformance::TABLES).await;
    opened.expect("SQLite opens")
}

async fn begin(store: &Arc<dyn RowStore>) -> Box<dyn RowTx> {
    store.begin(Mode::Write).await.expect("a unit begins")
}

async fn insert(tx: &mut Box<dyn RowTx>, row: Row) {
    tx.insert(&ITEMS, row).await.expect("a row is inserted");
}

async fn keys(store: &Arc<dyn RowStore>) -> Vec<String> {
    let mut tx = store.begin(Mode::Auto).await.unwrap();
    let mut keys = Vec::new();
    let mut visit = |row: &dyn ReadRow| {
        keys.push(row.read(0)?.as_text().unwrap_or_default().to_owned());
        Ok(())
    };
    tx.select(&Select::of(&ITEMS), &mut visit).await.unwrap();
    keys
}

/// Spawns a unit, and returns once it waits for its turn.
async fn spawn_waiting<T, R>(
    store: &Arc<dyn RowStore>,
    body: impl FnOnce(Box<dyn RowTx>) -> R + Send + 'static,
) -> JoinHandle<T>
where
    T: Send + 'static,
    R: Future<Output = T> + Send + 'static,
{
    let store = store.clone();
    let task = tokio::spawn(async move { body(begin(&store).await).await });
    // The runtime of these tests has one thread, so the task runs until it waits.
    yield_now().await;
    task
}

#[tokio::test]
async fn undoing_a_unit_does_not_affect_the_other_units_of_its_group() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join(FILE)).await;
    let mut first = begin(&store).await;
    insert(&mut first, item("group", "first", 0)).await;
    let dropped = spawn_waiting(&store, |mut tx| async move {
        insert(&mut tx, item("group", "dropped", 0)).await;
    });
    let dropped = dropped.await;
    let panics = spawn_waiting(&store, |mut tx| async move {
        insert(&mut tx, item("group", "panicked", 0)).await;
        panic!("in the middle of a unit");
    });
    let panics: JoinHandle<()> = panics.await;
    let rolled_back = spawn_waiting(&store, |mut tx| async move {
        insert(&mut tx, item("group", "rolled-back", 0)).await;
        tx.rollback().await;
    });
    let rolled_back = rolled_back.await;
    let last = spawn_waiting(&store, |mut tx| async move {
        insert(&mut tx, item("group", "last", 0)).await;
        tx.commit().await
    });
    let last = last.await;
    first.commit().await.expect("the first unit is committed");
    dropped.await.unwrap();
    assert!(panics.await.is_err());
    rolled_back.await.unwrap();
    last.await.unwrap().expect("the last unit is committed");
    assert_eq!(keys(&store).await, ["group-first", "group-last"]);
}

#[tokio::test]
async fn a_unit_is_acknowledged_if_the_unit_that_it_waits_for_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join(FILE)).await;
    let mut unit = begin(&store).await;
    insert(&mut unit, item("given-up", "1", 0)).await;
    let other = spawn_waiting(&store, |tx| async move { drop(tx) }).await;
    let commit = tokio::spawn(unit.commit());
    other.abort();
    commit.await.unwrap().expect("the unit is committed");
    assert_eq!(keys(&store).await, ["given-up-1"]);
}

#[tokio::test]
async fn a_unit_is_acknowledged_if_a_waiting_unit_was_cancelled_before_its_commit() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder.path().join(FILE)).await;
    for n in 0..20 {
        let mut unit = begin(&store).await;
        let other = spawn_waiting(&store, |tx| async move { drop(tx) }).await;
        other.abort();
        assert!(other.await.unwrap_err().is_cancelled());
        insert(&mut unit, item("given-up", &n.to_string(), 0)).await;
        unit.commit().await.expect("the unit is committed");
    }
    assert_eq!(keys(&store).await.len(), 20);
}

/// Opens a store whose commits can really fail, by a constraint that is checked at the commit.
async fn open_checking_late(path: &Path) -> Arc<dyn RowStore> {
    let text = create(&ITEMS, Dialect::Sqlite, false);
    let checked_late =
        "\"parent\" TEXT REFERENCES \"conformance_items\" (\"id\") DEFERRABLE INITIALLY DEFERRED";
    let text = text.replace("\"parent\" TEXT", checked_late);
    let database = rusqlite::Connection::open(path).unwrap();
    database.execute_batch(&text).unwrap();
    drop(database);
    open(path).await
}

/// Runs a unit whose commit fails in that store.
async fn fail(mut tx: Box<dyn RowTx>) -> Result<(), StoreError> {
    let mut row = item("failing", "orphan", 0);
    row[ITEMS.column_index("parent").unwrap()] = Value::text("nobody");
    insert(&mut tx, row).await;
    tx.commit().await
}

#[tokio::test]
async fn a_unit_that_can_start_when_another_commits_joins_its_group() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_checking_late(&folder.path().join(FILE)).await;
    let mut first = begin(&store).await;
    insert(&mut first, item("failing", "first", 0)).await;
    // The task of the second unit has not run yet.
    let of_second = store.clone();
    let second = tokio::spawn(async move { fail(begin(&of_second).await).await });
    assert!(first.commit().await.is_err());
    assert!(second.await.unwrap().is_err());
    assert!(keys(&store).await.is_empty());
}

#[tokio::test]
async fn a_failed_commit_fails_every_unit_of_its_group_and_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let store = open_checking_late(&folder.path().join(FILE)).await;
    let mut first = begin(&store).await;
    insert(&mut first, item("failing", "first", 0)).await;
    let bad = spawn_waiting(&store, fail).await;
    for outcome in [first.commit().await, bad.await.unwrap()] {
        let failed = outcome.expect_err("the group fails");
        assert!(matches!(failed, StoreError::CommitUnknown(_)), "{failed}");
    }
    assert!(keys(&store).await.is_empty());
    let mut next = begin(&store).await;
    insert(&mut next, item("failing", "next", 0)).await;
    next.commit().await.expect("the next group is committed");
    assert_eq!(keys(&store).await, ["failing-next"]);
}

/// The number of acknowledged units after which the process is killed.
const ACKNOWLEDGED: usize = 400;
const WRITERS: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_process_loses_no_acknowledged_unit_and_leaves_no_partial_unit() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--ignored",
            "--exact",
            "group_commit::writers_run_by_the_test_above_until_they_are_killed",
        ])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut acknowledged = Vec::new();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for line in lines.map_while(Result::ok) {
        let Some(unit) = line.strip_prefix("acknowledged ") else {
            continue;
        };
        acknowledged.push(unit.to_owned());
        if acknowledged.len() == ACKNOWLEDGED {
            // SIGKILL, during the load. Units that are still in the pipe were also acknowledged.
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(acknowledged.len() >= ACKNOWLEDGED, "the writers ran");
    let store = open(&folder.path().join(FILE)).await;
    let mut rows_of_unit: BTreeMap<String, usize> = BTreeMap::new();
    for key in keys(&store).await {
        let (unit, _) = key.rsplit_once('/').unwrap();
        *rows_of_unit.entry(unit.to_owned()).or_default() += 1;
    }
    for unit in &acknowledged {
        assert_eq!(rows_of_unit.get(unit), Some(&3), "{unit} was acknowledged");
    }
    for (unit, rows) in &rows_of_unit {
        assert_eq!(*rows, 3, "{unit} is complete");
        assert!(!unit.contains("undone"), "{unit} was rolled back");
    }
}

async fn write_until_killed(store: Arc<dyn RowStore>, writer: usize) {
    for n in 0.. {
        let undone = n % 5 == 4;
        let kind = if undone { "undone" } else { "kept" };
        let owner = format!("{kind}.{writer}.{n}");
        let mut tx = begin(&store).await;
        for part in ["/a", "/b", "/c"] {
            insert(&mut tx, item(&owner, part, 0)).await;
            // Lets other tasks run between the statements of a unit.
            yield_now().await;
        }
        if undone {
            drop(tx);
            continue;
        }
        tx.commit().await.expect("a unit is committed");
        let line = format!("acknowledged {owner}-\n");
        std::io::stdout().write_all(line.as_bytes()).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
#[ignore = "run and killed by the test above"]
async fn writers_run_by_the_test_above_until_they_are_killed() {
    let store = open(Path::new(FILE)).await;
    let writers =
        (0..WRITERS).map(|writer| tokio::spawn(write_until_killed(store.clone(), writer)));
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
}
