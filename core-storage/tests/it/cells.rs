//! A store over several cells is a store like any other.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::Mode;
use core_domain::testing::{ManualClock, SeededEntropy, named_uuid};
use core_storage::cells::{CellConfig, CellRows};
use core_storage::conformance::{self, ITEMS, TABLES, item};
use core_storage::fault::FaultStore;
use core_storage::postgres::{self, PostgresConfig};
use core_storage::testing::{self, TestDatabase};
use core_storage::{
    Column, Filter, ReadRow, RecordStore, Row, RowStore, Select, Table, Type, UnitEnd, VERSION,
    Value, memory, tables,
};

const KEY: [u8; 32] = [7; 32];

/// Longer than any test.
pub(crate) const LONG: Duration = Duration::from_secs(3_600);

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)))
}

fn cell(name: &str, rows: &Arc<dyn RowStore>, takes_new: bool) -> CellConfig {
    CellConfig {
        name: name.to_owned(),
        rows: Arc::clone(rows),
        takes_new_platforms: takes_new,
    }
}

/// Opens a store over these rows, the first of which are those of home.
pub(crate) async fn over(rows: &[Arc<dyn RowStore>; 3]) -> Result<CellRows, StoreError> {
    let [home, a, b] = rows;
    over_named(&[("home", home, false), ("a", a, true), ("b", b, true)]).await
}

/// Opens a store over cells: names, rows, and whether new platforms are assigned to them.
pub(crate) async fn over_named(
    cells: &[(&str, &Arc<dyn RowStore>, bool)],
) -> Result<CellRows, StoreError> {
    let cells = cells
        .iter()
        .map(|(name, rows, takes_new)| cell(name, rows, *takes_new));
    // The names of prepared units are unique in a server, which several tests share.
    static SEED: AtomicU64 = AtomicU64::new(1);
    let seed = SEED.fetch_add(1, Ordering::Relaxed);
    CellRows::open(cells.collect(), Arc::new(SeededEntropy::new(seed))).await
}

pub(crate) fn memories() -> [Arc<dyn RowStore>; 3] {
    [0; 3].map(|_| memory::rows(clock()))
}

pub(crate) async fn databases() -> ([Arc<dyn RowStore>; 3], [TestDatabase; 3]) {
    let databases = [
        testing::postgres().await,
        testing::postgres().await,
        testing::postgres().await,
    ];
    let mut rows = Vec::new();
    for database in &databases {
        let config = PostgresConfig::new(&*database.url, KEY);
        rows.push(postgres::rows(config, TABLES).await.unwrap());
    }
    (rows.try_into().unwrap(), databases)
}

async fn conforms(rows: [Arc<dyn RowStore>; 3]) {
    let cells = over(&rows).await.unwrap().with_unknown_platforms_spread();
    let cells: Arc<dyn RowStore> = Arc::new(cells);
    conformance::run(cells.clone()).await;
    conformance::records(Arc::new(RecordStore::new(cells, KEY))).await;
}

pub(crate) async fn count(rows: &Arc<dyn RowStore>) -> u64 {
    let mut unit = rows.begin(Mode::Auto).await.unwrap();
    unit.count(&ITEMS, &Filter::all()).await.unwrap()
}

fn platforms() -> &'static Table {
    let mut tables = tables::of_records().into_iter();
    tables.find(|table| table.name == "platforms").unwrap()
}

/// Returns the row of a platform whose id has this name. Its other values are empty.
fn platform(id: &str, slug: &str) -> Row {
    let value = |column: &Column| match (column.name, column.kind) {
        ("id", _) => Value::text(&named_uuid(id)),
        ("slug", _) => Value::text(slug),
        (VERSION, _) => Value::Int(1),
        _ if column.nullable => Value::Null,
        (_, Type::Int) => Value::Int(0),
        (_, Type::Bool) => Value::Bool(false),
        (_, Type::Text) => Value::text("x"),
        (_, Type::Uuid) => Value::text(&named_uuid("x")),
        (_, Type::Json) => Value::text("null"),
    };
    platforms().columns.iter().map(value).collect()
}

/// Inserts a platform in a unit of its own.
async fn add(cells: &CellRows, id: &str, slug: &str) -> Result<(), StoreError> {
    let mut unit = cells.begin(Mode::Write).await?;
    unit.insert(platforms(), platform(id, slug)).await?;
    unit.commit().await
}

/// Changes the slug of a platform if it has this version. Returns the number of changed rows.
async fn rename(cells: &CellRows, id: &str, version: i64, slug: &str) -> u64 {
    let mut unit = cells.begin(Mode::ReadCommitted).await.unwrap();
    let filter = Filter::eq("id", &*named_uuid(id)).and(Filter::eq(VERSION, version));
    let set = [("slug", Value::text(slug))];
    let changed = unit.update(platforms(), &filter, &set).await.unwrap();
    unit.commit().await.unwrap();
    changed
}

fn is_taken(outcome: &Result<(), StoreError>) -> bool {
    matches!(
        outcome,
        Err(StoreError::Conflict {
            table: "platforms",
            index: "slug"
        })
    )
}

#[tokio::test]
async fn a_slug_is_unique_over_all_cells_until_it_is_changed() {
    let cells = over(&memories()).await.unwrap();
    add(&cells, "p-0", "acme").await.unwrap();
    for id in ["p-1", "p-2", "p-3", "p-4"] {
        assert!(is_taken(&add(&cells, id, "acme").await), "{id}");
    }
    // A change of a version that is not stored changes nothing.
    assert_eq!(rename(&cells, "p-0", 7, "other").await, 0);
    assert!(is_taken(&add(&cells, "p-1", "acme").await));
    add(&cells, "p-1", "other").await.unwrap();
    assert_eq!(rename(&cells, "p-0", 1, "new").await, 1);
    assert!(is_taken(&add(&cells, "p-2", "new").await));
    add(&cells, "p-2", "acme").await.unwrap();
}

#[tokio::test]
async fn existing_platforms_stay_at_home_and_their_slugs_are_taken() {
    let rows = memories();
    let mut unit = rows[0].begin(Mode::Write).await.unwrap();
    unit.insert(platforms(), platform("old", "acme"))
        .await
        .unwrap();
    // The log of a platform that was removed.
    let seals = table("audit_seals");
    let mut tables = tables::of_records().into_iter();
    let heads = tables.find(|table| table.name == "audit_heads").unwrap();
    let mut head: Row = vec![Value::Null; heads.columns.len()];
    for (value, column) in head.iter_mut().zip(heads.columns) {
        *value = match (column.name, column.kind) {
            ("chain", _) => Value::text(&format!("platform:{}", named_uuid("p-1"))),
            (_, Type::Text) => Value::text(""),
            _ => Value::Int(1),
        };
    }
    unit.insert(heads, head).await.unwrap();
    unit.insert(seals, seal(&named_uuid("p-1"), 1))
        .await
        .unwrap();
    unit.commit().await.unwrap();
    let cells = over(&rows).await.unwrap();
    assert_eq!(positions(&cells, seals).await.unwrap(), [1]);
    let mut unit = cells.begin(Mode::Write).await.unwrap();
    unit.insert(seals, seal(&named_uuid("p-1"), 2))
        .await
        .unwrap();
    unit.commit().await.unwrap();
    let mut unit = rows[0].begin(Mode::Auto).await.unwrap();
    assert_eq!(unit.count(seals, &Filter::all()).await.unwrap(), 2);
    for id in ["p-0", "p-1", "p-2"] {
        assert!(is_taken(&add(&cells, id, "acme").await), "{id}");
    }
    assert_eq!(rename(&cells, "old", 1, "new").await, 1);
    let mut unit = rows[0].begin(Mode::Auto).await.unwrap();
    let renamed = Filter::eq("slug", "new");
    assert_eq!(unit.count(platforms(), &renamed).await.unwrap(), 1);
    // A second process has the same directory.
    let again = over(&rows).await.unwrap();
    assert!(is_taken(&add(&again, "p-1", "new").await));
}

#[tokio::test]
async fn a_row_that_is_written_before_its_platform_is_in_the_same_cell() {
    let rows = memories();
    let cells = over(&rows).await.unwrap();
    let seals = table("audit_seals");
    for (position, id) in [(1, "p-5"), (2, "p-1")] {
        let mut unit = cells.begin(Mode::Write).await.unwrap();
        unit.append(seals, vec![seal(&named_uuid(id), position)])
            .await
            .unwrap();
        let row = platform(id, id);
        unit.insert(platforms(), row).await.unwrap();
        unit.commit().await.unwrap();
    }
    for (cell, id) in [(2, "p-5"), (1, "p-1")] {
        let mut unit = rows[cell].begin(Mode::Auto).await.unwrap();
        for table in [seals, platforms()] {
            let count = unit.count(table, &Filter::all()).await.unwrap();
            assert_eq!(count, 1, "{} of {id}", table.name);
        }
    }
}

/// Returns a seal of a platform at a position.
fn seal(platform: &str, position: i64) -> Row {
    vec![
        Value::text(&named_uuid(&format!("{position:03}"))),
        Value::text(&format!("platform:{platform}")),
        Value::Int(position),
        Value::Int(position),
        Value::text("changes"),
        Value::text(""),
        Value::text(""),
        Value::Int(0),
        Value::Int(1),
    ]
}

/// Returns the positions of all seals.
async fn positions(cells: &CellRows, seals: &'static Table) -> Result<Vec<i64>, StoreError> {
    let mut positions = Vec::new();
    let mut visit = |row: &dyn ReadRow| {
        positions.extend(row.read(3)?.as_int());
        Ok(())
    };
    let mut unit = cells.begin(Mode::Read).await?;
    let all = Select::of(seals).order_by("position");
    unit.select(&all, &mut visit).await?;
    Ok(positions)
}

/// Returns the table with this name.
pub(crate) fn table(name: &str) -> &'static Table {
    let mut tables = tables::all().into_iter();
    tables.find(|table| table.name == name).unwrap()
}

/// Stores the decision to commit the unit `first`, which its process does not carry out.
pub(crate) async fn decide(rows: &[Arc<dyn RowStore>; 3]) {
    let mut home = rows[0].begin(Mode::Write).await.unwrap();
    let decision = vec![
        Value::text("first"),
        Value::Bool(true),
        Value::Int(home.now().await.unwrap().millis()),
        Value::Int(1),
    ];
    let decisions = table("cell_decisions");
    home.insert(decisions, decision).await.unwrap();
    home.commit().await.unwrap();
}

#[tokio::test]
async fn a_reader_of_all_seals_carries_out_commits_that_have_not_reached_their_cells() {
    let seals = table("audit_seals");
    let rows = memories();
    let cells = over(&rows).await.unwrap().with_unknown_platforms_spread();
    let [second, first] = two_platforms();
    let mut unit = rows[1].begin(Mode::Write).await.unwrap();
    unit.insert(seals, seal(first, 1)).await.unwrap();
    let name = cells.prepared_name("a", "first");
    unit.prepare(&name).await.unwrap();
    let mut unit = rows[2].begin(Mode::Write).await.unwrap();
    unit.insert(seals, seal(second, 2)).await.unwrap();
    unit.commit().await.unwrap();
    // The first unit may still be undone.
    assert_eq!(positions(&cells, seals).await.unwrap(), [2]);
    decide(&rows).await;
    assert_eq!(positions(&cells, seals).await.unwrap(), [1, 2]);
}

#[tokio::test]
async fn a_reader_of_all_seals_waits_for_the_process_that_commits() {
    let seals = table("audit_seals");
    let rows = memories();
    let cells = over(&rows).await.unwrap().with_unknown_platforms_spread();
    let [_, first] = two_platforms();
    let mut unit = rows[1].begin(Mode::Write).await.unwrap();
    unit.insert(seals, seal(first, 1)).await.unwrap();
    let name = cells.prepared_name("a", "first");
    unit.prepare(&name).await.unwrap();
    let end = async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        rows[1].end_prepared(&name, UnitEnd::Commit).await.unwrap();
    };
    let (found, ()) = tokio::join!(positions(&cells, seals), end);
    assert_eq!(found.unwrap(), [1]);
}

#[tokio::test]
async fn a_response_that_is_repeated_confirms_only_what_readers_see() {
    let rows = memories();
    let cells = over(&rows).await.unwrap().with_unknown_platforms_spread();
    let mut unit = rows[1].begin(Mode::Write).await.unwrap();
    unit.insert(&ITEMS, item("p-1", "1", 0)).await.unwrap();
    let name = cells.prepared_name("a", "first");
    unit.prepare(&name).await.unwrap();
    let responses = table("idempotency_keys");
    let mut home = rows[0].begin(Mode::Write).await.unwrap();
    let response = responses.columns.iter().map(|column| match column.kind {
        Type::Text | Type::Uuid | Type::Json => Value::text("key"),
        Type::Int => Value::Int(201),
        Type::Bool => Value::Bool(false),
    });
    home.insert(responses, response.collect()).await.unwrap();
    home.commit().await.unwrap();
    decide(&rows).await;
    assert_eq!(count(&rows[1]).await, 0);
    let mut unit = cells.begin(Mode::Read).await.unwrap();
    let mut is_found = false;
    let mut visit = |_: &dyn ReadRow| {
        is_found = true;
        Ok(())
    };
    let all = Filter::all();
    unit.get(responses, "key", &all, &mut visit).await.unwrap();
    unit.rollback().await;
    assert!(is_found);
    assert_eq!(count(&rows[1]).await, 1);
}

/// Returns platforms of the first and of the second cell beside home.
fn two_platforms() -> [&'static str; 2] {
    ["p-0", "p-1"]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cells_in_memory_conform() {
    conforms(memories()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cells_on_postgres_conform() {
    let (rows, _databases) = databases().await;
    conforms(rows).await;
}

#[tokio::test]
async fn rows_of_different_platforms_are_in_different_cells() {
    let rows = memories();
    let cells = over(&rows).await.unwrap().with_unknown_platforms_spread();
    let mut unit = cells.begin(Mode::Write).await.unwrap();
    for platform in ["p-0", "p-1", "p-2", "p-3", "p-4", "p-5"] {
        unit.insert(&ITEMS, item(platform, "1", 0)).await.unwrap();
    }
    unit.commit().await.unwrap();
    let [home, a, b] = &rows;
    assert_eq!(count(home).await, 0);
    assert_eq!(count(a).await + count(b).await, 6);
    assert!(count(a).await > 0 && count(b).await > 0);
}

/// Writes a row in each of two cells, whose databases fail when the unit is decided or after that.
pub(crate) async fn write_in_two(cells: &CellRows) -> Result<(), StoreError> {
    let mut unit = cells.begin(Mode::Write).await?;
    for platform in two_platforms() {
        unit.insert(&ITEMS, item(platform, "1", 0)).await?;
    }
    unit.commit().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_unit_over_several_databases_is_atomic() {
    let (rows, _databases) = databases().await;
    let cells = over(&rows).await.unwrap().with_unknown_platforms_spread();
    write_in_two(&cells).await.unwrap();
    // The second run has a conflict in one of the cells, so it changes none.
    let mut unit = cells.begin(Mode::Write).await.unwrap();
    unit.append(&ITEMS, vec![item("p-0", "2", 0), item("p-1", "1", 0)])
        .await
        .unwrap();
    assert!(matches!(unit.commit().await, Err(StoreError::Retry(_))));
    let all: Arc<dyn RowStore> = Arc::new(cells.clone());
    assert_eq!(count(&all).await, 2);
    assert_eq!(cells.end_abandoned(Duration::ZERO).await.unwrap(), 0);
}

/// A home cell and two others in memory, which fail on demand.
pub(crate) async fn faulty() -> (CellRows, [FaultStore; 3], [Arc<dyn RowStore>; 3]) {
    let inner = memories();
    let faults = inner.clone().map(FaultStore::new);
    let rows = faults
        .clone()
        .map(|store| Arc::new(store) as Arc<dyn RowStore>);
    let cells = over(&rows).await.unwrap().with_unknown_platforms_spread();
    (cells, faults, inner)
}

#[tokio::test]
async fn a_unit_over_several_cells_is_atomic_if_any_call_fails() {
    let mut failed = 0;
    for store in 0..3 {
        for call in 1..=12 {
            let (cells, faults, inner) = faulty().await;
            faults[store].fail_call(call);
            let outcome = write_in_two(&cells).await;
            failed += u32::from(faults[store].has_failed());
            // Every other call works.
            faults[store].fail_call(u32::MAX);
            cells.end_abandoned(Duration::ZERO).await.unwrap();
            let [home, a, b] = &inner;
            let written = count(home).await + count(a).await + count(b).await;
            match outcome {
                Ok(()) => assert_eq!(written, 2, "call {call} of store {store}"),
                Err(StoreError::CommitUnknown(_)) => assert!(written == 0 || written == 2),
                Err(_) => assert_eq!(written, 0, "call {call} of store {store}"),
            }
        }
    }
    assert!(failed > 12, "only {failed} calls failed");
}

#[tokio::test]
async fn a_claim_leaves_out_a_cell_that_cannot_be_reached() {
    let (cells, faults, _) = faulty().await;
    write_in_two(&cells).await.unwrap();
    let select = Select::of(&ITEMS).limit(2);
    // Each of the cells is the first one once.
    for _ in 0..3 {
        faults[1].fail_from_call(1);
        let mut claimed = 0;
        let mut visit = |_: &dyn ReadRow| {
            claimed += 1;
            Ok(())
        };
        let mut unit = cells.begin(Mode::Write).await.unwrap();
        unit.claim(&select, &mut visit).await.unwrap();
        unit.rollback().await;
        assert_eq!(claimed, 1);
    }
    for store in &faults {
        store.fail_from_call(1);
    }
    let mut unit = cells.begin(Mode::Write).await.unwrap();
    let claimed = unit.claim(&select, &mut |_: &dyn ReadRow| Ok(())).await;
    assert!(matches!(claimed, Err(StoreError::Unavailable(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prepared_unit_without_a_decision_is_undone() {
    let (rows, _databases) = databases().await;
    let cells = over(&rows).await.unwrap();
    let name = cells.prepared_name("a", "0123");
    let mut unit = rows[1].begin(Mode::Write).await.unwrap();
    unit.insert(&ITEMS, item("p-0", "1", 0)).await.unwrap();
    unit.prepare(&name).await.unwrap();
    // Another process may still decide.
    assert_eq!(cells.end_abandoned(LONG).await.unwrap(), 0);
    assert_eq!(cells.end_abandoned(Duration::ZERO).await.unwrap(), 1);
    assert_eq!(count(&rows[1]).await, 0);
    assert_eq!(cells.end_abandoned(Duration::ZERO).await.unwrap(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_of_other_processes_are_carried_out_at_once() {
    let (rows, _databases) = databases().await;
    let cells = over(&rows).await.unwrap();
    let mut unit = rows[1].begin(Mode::Write).await.unwrap();
    unit.insert(&ITEMS, item("p-0", "1", 0)).await.unwrap();
    let name = cells.prepared_name("a", "first");
    unit.prepare(&name).await.unwrap();
    decide(&rows).await;
    // Several processes may do so at the same time.
    let (one, other) = tokio::join!(cells.end_abandoned(LONG), cells.end_abandoned(LONG));
    assert!(one.unwrap() + other.unwrap() > 0);
    assert_eq!(count(&rows[1]).await, 1);
}

#[tokio::test]
async fn a_cell_that_cannot_prepare_units_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("core.db");
    let config = core_storage::sqlite::SqliteConfig::new(path, clock(), KEY);
    let sqlite = core_storage::sqlite::rows(config, TABLES).await.unwrap();
    let [home, a, _] = memories();
    let refused = over(&[home, a, sqlite]).await;
    assert!(refused.unwrap_err().to_string().contains("cannot prepare"));
}
