//! A platform moves to another cell while it is in use.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use core_storage::cells::{
    CellRows, CellUse, MoveError, MoveOptions, MoveProgress, MoveReport, UnendedMove,
};
use core_storage::copy::{TableDigest, digest_rows};
use core_storage::fault::FaultStore;
use core_storage::testing;
use core_storage::{
    Column, Filter, ReadRow, Replacement, Row, RowStore, RowTx, Select, Table, Type, VERSION,
    Value, tables,
};

use crate::cells::{databases, memories, over, over_named};

/// The platforms of the tests. Both are in the first cell beside home.
pub(crate) const MOVING: &str = "00000003-0000-7000-8000-000000000000";
pub(crate) const STAYING: &str = "00000007-0000-7000-8000-000000000000";

/// For tests in which one process uses the cells.
pub(crate) const AT_ONCE: MoveOptions = MoveOptions {
    max_pause: Duration::from_secs(10),
    max_attempts: 3,
    settle_time: Duration::ZERO,
};

fn table(name: &str) -> &'static Table {
    let mut tables = tables::of_records().into_iter();
    tables.find(|table| table.name == name).unwrap()
}

/// Returns the id that rows of a platform with this number have.
fn id_of(platform: &str, number: u32) -> String {
    let (start, _) = platform.split_at(24);
    format!("{start}{number:012}")
}

/// Returns a row of the table that belongs to a platform. Its key contains the number.
pub(crate) fn row(table: &Table, platform: &str, number: u32) -> Row {
    let value = |(at, column): (usize, &Column)| match (column.name, column.kind) {
        ("lane", _) => Value::text(&format!("platform:{platform}")),
        ("chain", _) => Value::text(&format!("platform:{platform}")),
        ("job_id", _) => Value::text(&id_of(platform, number)),
        ("platform_id", _) => Value::text(platform),
        ("owner", _) if table.name == "webhooks" => Value::text(platform),
        ("position", _) => Value::Int(i64::from(number)),
        (VERSION, _) => Value::Int(1),
        _ if at == 0 && table.name == "platforms" => Value::text(platform),
        (_, Type::Text | Type::Uuid) if column.nullable => Value::Null,
        (_, Type::Int) => Value::Int(i64::from(number)),
        (_, Type::Bool) => Value::Bool(false),
        (_, Type::Text) => Value::text(&format!("{platform}-{number}")),
        (_, Type::Uuid) => Value::text(&id_of(platform, number)),
        (_, Type::Json) => Value::text("null"),
    };
    table.columns.iter().enumerate().map(value).collect()
}

/// Returns the tables with rows of platforms, beginning with the platforms and their jobs.
fn tables_of_platforms() -> Vec<&'static Table> {
    let names = ["lane", "chain", "job_id", "platform_id"];
    let may_belong = [
        "audit_entries",
        "unsealed_audit_entries",
        "webhooks",
        "webhook_deliveries",
    ];
    let at_home = ["api_keys", "billing_portal_sessions", "onboardings"];
    let mut found = tables::of_records();
    found.retain(|table| {
        let is_named = |column: &Column| names.contains(&column.name) && !column.nullable;
        let has_rows = may_belong.contains(&table.name) || table.columns.iter().any(is_named);
        has_rows && !at_home.contains(&table.name) && table.name != "jobs"
    });
    found.splice(0..0, [table("platforms"), table("jobs")]);
    found
}

/// Inserts rows of a platform in every table: this number, or one in a table whose key is the platform.
async fn fill(cells: &CellRows, platform: &str, rows: u32) {
    for table in tables_of_platforms() {
        for number in 0..rows {
            let mut unit = cells.begin(Mode::Write).await.unwrap();
            match unit.insert(table, row(table, platform, number)).await {
                Ok(()) => unit.commit().await.unwrap(),
                Err(StoreError::Conflict { .. }) if number > 0 => break,
                Err(error) => panic!("{}: {error:?}", table.name),
            }
        }
    }
}

/// Opens cells with the two platforms.
async fn open_filled(rows: &[Arc<dyn RowStore>; 3], number: u32) -> CellRows {
    let cells = over(rows).await.unwrap();
    for platform in [MOVING, STAYING] {
        fill(&cells, platform, number).await;
    }
    cells
}

async fn digests(rows: &dyn RowStore) -> Vec<TableDigest> {
    digest_rows(rows).await.unwrap()
}

/// Compares all tables. Shows those that differ.
fn assert_same(found: &[TableDigest], expected: &[TableDigest], when: &str) {
    let tables = found.iter().zip(expected);
    let differing: Vec<_> = tables
        .filter(|(found, expected)| found != expected)
        .collect();
    assert!(differing.is_empty(), "{when}: {differing:#?}");
}

fn rows_in(digests: &[TableDigest]) -> u64 {
    digests.iter().map(|digest| digest.rows).sum()
}

pub(crate) async fn move_to(
    cells: &CellRows,
    cell: &str,
    options: &MoveOptions,
) -> Result<MoveReport, MoveError> {
    cells
        .move_platform(MOVING, cell, options, &mut |_| {})
        .await
}

/// Moves a platform from cell to cell and back, and compares all rows before and after.
async fn moves_with_all_rows(rows: [Arc<dyn RowStore>; 3]) {
    let cells = open_filled(&rows, 12).await;
    let before = digests(&cells).await;
    let [_, a, _] = &rows;
    let source = digests(a.as_ref()).await;
    for cell in ["b", "home", "a"] {
        let report = move_to(&cells, cell, &AT_ONCE).await.unwrap();
        assert!(report.pause.is_some());
        assert!(report.removed > 200, "{report:?}");
        let named = report
            .tables
            .iter()
            .find(|(name, _)| *name == "audit_seals");
        assert_eq!(named, Some(&("audit_seals", 12)));
        assert_same(&digests(&cells).await, &before, &format!("in {cell}"));
        let left = rows_in(&digests(a.as_ref()).await);
        if cell == "a" {
            assert_eq!(digests(a.as_ref()).await, source);
        } else {
            // The other platform has at least one row in each table.
            assert_eq!(left, rows_in(&source) / 2, "in {cell}");
        }
        // The cell takes changes of the platform.
        let mut unit = cells.begin(Mode::Write).await.unwrap();
        let with_key = Filter::eq("id", MOVING);
        let set = [("slug", Value::text("changed"))];
        let changed = unit.update(table("platforms"), &with_key, &set).await;
        assert_eq!(changed.unwrap(), 1);
        unit.rollback().await;
    }
}

#[tokio::test]
async fn a_platform_moves_with_all_rows_in_memory() {
    moves_with_all_rows(memories()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_platform_moves_with_all_rows_on_postgres() {
    let (rows, _databases) = databases().await;
    moves_with_all_rows(rows).await;
}

#[tokio::test]
async fn a_move_that_cannot_start_says_why() {
    let cells = open_filled(&memories(), 1).await;
    let unknown = move_to(&cells, "c", &AT_ONCE).await;
    assert!(matches!(unknown, Err(MoveError::UnknownCell(_))));
    let same = move_to(&cells, "a", &AT_ONCE).await;
    assert!(matches!(same, Err(MoveError::AlreadyThere(_))));
    let missing = async |id| cells.move_platform(id, "b", &AT_ONCE, &mut |_| {}).await;
    for id in ["p-9", "*", ""] {
        let missing = missing(id).await;
        assert!(matches!(missing, Err(MoveError::UnknownPlatform(_))));
    }
    let cancelled = cells.cancel_move(MOVING).await;
    assert!(matches!(cancelled, Err(MoveError::NotMoving)));
}

/// Returns why the cell `a` cannot be removed, and the number of its platforms.
async fn uses_of_a(cells: &CellRows) -> (u64, Vec<CellUse>) {
    let states = cells.states().await.unwrap();
    let names: Vec<_> = states.iter().map(|state| state.name.as_str()).collect();
    assert_eq!(names, ["home", "a", "b"]);
    assert_eq!(states[0].uses, [CellUse::Home]);
    let [_, a, _] = states.try_into().unwrap();
    (a.platforms, a.uses)
}

/// Moves all platforms out of a cell, beginning with one whose move has not ended, and opens the store without that cell.
async fn empties_a_cell(rows: [Arc<dyn RowStore>; 3]) {
    let cells = open_filled(&rows, 3).await;
    let before = digests(&cells).await;
    let (platforms, uses) = uses_of_a(&cells).await;
    assert_eq!(platforms, 2);
    assert!(uses.contains(&CellUse::Platforms) && uses.contains(&CellUse::Rows("job_events")));
    let stopped = move_to(&cells, "home", &WITHOUT_SWITCH).await;
    assert!(matches!(stopped, Err(MoveError::TooSlow)));
    assert!(uses_of_a(&cells).await.1.contains(&CellUse::Moves));
    let refused = cells
        .move_all_platforms("a", "b", &AT_ONCE, &mut |_| {}, &mut |_| {})
        .await;
    assert!(matches!(refused, Err(MoveError::TakesNewPlatforms(_))));
    drop(cells);
    let [home, a, b] = &rows;
    let all = [("home", home, false), ("a", a, false), ("b", b, true)];
    let cells = over_named(&all).await.unwrap();
    // A platform that changes too fast does not keep the others from moving.
    let too_slow = cells
        .move_all_platforms("a", "b", &WITHOUT_SWITCH, &mut |_| {}, &mut |_| {})
        .await;
    match too_slow {
        Err(MoveError::SomeTooSlow { moved: 0, left }) => assert_eq!(left, [MOVING, STAYING]),
        other => panic!("{other:?}"),
    }
    let mut moved = Vec::new();
    let mut on_start = |id: &str| moved.push(id.to_owned());
    let number = cells
        .move_all_platforms("a", "b", &AT_ONCE, &mut |_| {}, &mut on_start)
        .await;
    assert_eq!(number.unwrap(), 2);
    assert_eq!(moved, [MOVING, STAYING]);
    let (platforms, uses) = uses_of_a(&cells).await;
    assert_eq!((platforms, uses), (0, Vec::new()));
    drop(cells);
    let without_a = over_named(&[("home", home, false), ("b", b, true)]).await;
    assert_same(&digests(&without_a.unwrap()).await, &before, "without a");
}

#[tokio::test]
async fn a_cell_that_was_emptied_can_be_removed_in_memory() {
    empties_a_cell(memories()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_that_was_emptied_can_be_removed_on_postgres() {
    let (rows, _databases) = databases().await;
    empties_a_cell(rows).await;
}

#[tokio::test]
async fn all_platforms_of_a_cell_cannot_move_to_itself_or_from_a_cell_that_is_unknown() {
    let cells = open_filled(&memories(), 1).await;
    for (from, to) in [("home", "home"), ("c", "a"), ("home", "c")] {
        let error = cells
            .move_all_platforms(from, to, &AT_ONCE, &mut |_| {}, &mut |_| {})
            .await
            .unwrap_err();
        let is_expected = match from == to {
            true => matches!(error, MoveError::AlreadyThere(_)),
            false => matches!(error, MoveError::UnknownCell(_)),
        };
        assert!(is_expected, "{from} to {to}: {error:?}");
    }
}

/// Options of a move that ends before its switch.
const WITHOUT_SWITCH: MoveOptions = MoveOptions {
    max_attempts: 0,
    ..AT_ONCE
};

#[tokio::test]
async fn the_rows_of_a_moving_platform_are_seen_once() {
    let rows = memories();
    let cells = open_filled(&rows, 12).await;
    let before = digests(&cells).await;
    let stopped = move_to(&cells, "b", &WITHOUT_SWITCH).await;
    assert!(matches!(stopped, Err(MoveError::TooSlow)));
    let [_, _, b] = &rows;
    assert!(rows_in(&digests(b.as_ref()).await) > 200);
    assert_same(&digests(&cells).await, &before, "");
    for mode in [Mode::Read, Mode::Write, Mode::ReadCommitted, Mode::Auto] {
        let mut unit = cells.begin(mode).await.unwrap();
        for name in [
            "jobs",
            "job_lanes",
            "platforms",
            "audit_seals",
            "dlq_entries",
        ] {
            let counted = unit.count(table(name), &Filter::all()).await.unwrap();
            let stored = before.iter().find(|digest| digest.table == name);
            assert_eq!(Some(counted), stored.map(|digest| digest.rows), "{name}");
        }
    }
    let mut unit = cells.begin(Mode::ReadCommitted).await.unwrap();
    let mut claimed = Vec::new();
    let mut visit = |row: &dyn ReadRow| {
        claimed.push(row.read(0)?.to_value());
        Ok(())
    };
    let lanes = Select::of(table("job_lanes")).limit(10);
    unit.claim(&lanes, &mut visit).await.unwrap();
    claimed.sort();
    let lanes = [MOVING, STAYING].map(|id| Value::text(&format!("platform:{id}")));
    assert_eq!(claimed, lanes);
    // The platform goes nowhere else before this move has ended.
    drop(unit);
    let other = move_to(&cells, "home", &AT_ONCE).await;
    assert!(matches!(other, Err(MoveError::OtherMove(_))));
    let unended = UnendedMove {
        platform: MOVING.to_owned(),
        from: "a".to_owned(),
        to: "b".to_owned(),
    };
    let moves = cells.unended_moves().await.unwrap();
    assert_eq!(moves, std::slice::from_ref(&unended));
    let states = cells.move_states().await.unwrap();
    assert_eq!(states.len(), 1);
    assert_eq!(states[0].unended, unended);
    assert!(!states[0].is_switched && states[0].last_run_at.is_some());
    assert!(cells.cancel_move(MOVING).await.unwrap() > 200);
    assert!(cells.unended_moves().await.unwrap().is_empty());
    assert!(cells.move_states().await.unwrap().is_empty());
    assert_eq!(rows_in(&digests(b.as_ref()).await), 0);
    assert_same(&digests(&cells).await, &before, "");
    move_to(&cells, "home", &AT_ONCE).await.unwrap();
    assert_same(&digests(&cells).await, &before, "");
}

#[tokio::test]
async fn changes_between_two_passes_reach_the_target() {
    let rows = memories();
    let cells = open_filled(&rows, 12).await;
    move_to(&cells, "b", &WITHOUT_SWITCH).await.unwrap_err();
    change_rows(&cells).await;
    let before = digests(&cells).await;
    move_to(&cells, "b", &AT_ONCE).await.unwrap();
    assert_same(&digests(&cells).await, &before, "");
}

/// A lock that keeps the rows of jobs from being written in a database.
async fn lock_job_events(url: &str) -> tokio_postgres::Client {
    let client = testing::connect(url).await;
    let lock = "BEGIN; LOCK TABLE job_events IN SHARE ROW EXCLUSIVE MODE";
    client.batch_execute(lock).await.unwrap();
    client
}

/// Moves the platform. After each report, the move waits until the future for it has ended.
async fn move_while<F: Future<Output = ()> + Send>(
    cells: &CellRows,
    options: &MoveOptions,
    mut change: impl FnMut(MoveProgress) -> F + Send + 'static,
) -> Result<MoveReport, MoveError> {
    let (progress, mut reports) = tokio::sync::mpsc::unbounded_channel();
    let (done, waiting) = std::sync::mpsc::channel::<()>();
    let changes = tokio::spawn(async move {
        while let Some(report) = reports.recv().await {
            change(report).await;
            done.send(()).unwrap();
        }
    });
    let mut report_and_wait = move |report| {
        progress.send(report).unwrap();
        waiting.recv().unwrap();
    };
    let moved = cells.move_platform(MOVING, "b", options, &mut report_and_wait);
    let moved = moved.await;
    drop(report_and_wait);
    changes.await.unwrap();
    moved
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_to_switch_that_ended_between_a_job_and_its_events_leaves_none_out() {
    let (rows, databases) = databases().await;
    let cells = open_filled(&rows, 3).await;
    let events = table("job_events");
    let (changing, url) = (cells.clone(), databases[2].url.clone());
    let lock = Arc::new(tokio::sync::Mutex::new(None));
    let attempts = Arc::new(AtomicU32::new(0));
    let failed = Arc::clone(&attempts);
    let change = move |report| {
        let (changing, url) = (changing.clone(), url.clone());
        let (lock, failed) = (Arc::clone(&lock), Arc::clone(&failed));
        async move {
            match report {
                // Before the switch, a job is added whose events cannot be copied.
                MoveProgress::CaughtUp { .. } if failed.load(Ordering::SeqCst) == 0 => {
                    add_rows(&changing, &[table("jobs"), events]).await;
                    *lock.lock().await = Some(lock_job_events(&url).await);
                }
                MoveProgress::TooSlow => {
                    failed.fetch_add(1, Ordering::SeqCst);
                    *lock.lock().await = None;
                }
                _ => {}
            }
        }
    };
    let options = MoveOptions {
        max_pause: Duration::from_millis(500),
        max_attempts: 10,
        settle_time: Duration::ZERO,
    };
    move_while(&cells, &options, change).await.unwrap();
    assert!(attempts.load(Ordering::SeqCst) > 0);
    let of_job = Filter::eq("job_id", &*id_of(MOVING, 99));
    let mut unit = cells.begin(Mode::Read).await.unwrap();
    assert_eq!(unit.count(events, &of_job).await.unwrap(), 1);
}

/// Adds a row of the moving platform to each of the tables.
async fn add_rows(cells: &CellRows, tables: &[&'static Table]) {
    let mut unit = cells.begin(Mode::Write).await.unwrap();
    for table in tables {
        unit.insert(table, row(table, MOVING, 99)).await.unwrap();
    }
    unit.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_that_change_after_they_were_compared_are_copied_before_the_switch() {
    let (rows, databases) = databases().await;
    let cells = open_filled(&rows, 12).await;
    let expected = Arc::new(Mutex::new(Vec::new()));
    let (changing, changed) = (cells.clone(), Arc::clone(&expected));
    let change = move |report| {
        let (changing, changed) = (changing.clone(), Arc::clone(&changed));
        async move {
            if matches!(report, MoveProgress::CaughtUp { .. }) {
                change_rows(&changing).await;
                let digests = digests(&changing).await;
                *changed.lock().unwrap() = digests;
            }
        }
    };
    let report = move_while(&cells, &AT_ONCE, change).await.unwrap();
    assert!(report.pause.is_some());
    let expected = std::mem::take(&mut *expected.lock().unwrap());
    assert_same(&digests(&cells).await, &expected, "");
    assert_eq!(recording_in(&databases[1].url).await, [0, 0, 0]);
}

/// Returns the numbers of triggers that record changes in a database, of those that are enabled, and of recorded changes.
async fn recording_in(url: &str) -> [i64; 3] {
    let client = testing::connect(url).await;
    let of_triggers = "FROM pg_trigger WHERE tgname LIKE 'record_%'";
    let counts = format!(
        "SELECT (SELECT count(*) {of_triggers}), (SELECT count(*) {of_triggers} AND tgenabled <> 'D'), \
         (SELECT count(*) FROM cell_changes)"
    );
    let counts = client.query_one(&counts, &[]).await.unwrap();
    [0, 1, 2].map(|at| counts.get(at))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_does_not_wait_for_a_reader_of_the_source() {
    let (rows, databases) = databases().await;
    let cells = open_filled(&rows, 3).await;
    let before = digests(&cells).await;
    let reader = testing::connect(&databases[1].url).await;
    let read = "BEGIN; LOCK TABLE jobs IN ACCESS SHARE MODE";
    reader.batch_execute(read).await.unwrap();
    move_to(&cells, "b", &AT_ONCE).await.unwrap();
    assert_eq!(recording_in(&databases[1].url).await, [3, 0, 0]);
    reader.batch_execute("COMMIT").await.unwrap();
    move_to(&cells, "a", &AT_ONCE).await.unwrap();
    move_to(&cells, "b", &AT_ONCE).await.unwrap();
    assert_eq!(recording_in(&databases[1].url).await, [0, 0, 0]);
    assert_same(&digests(&cells).await, &before, "");
}

/// Adds, changes and deletes rows of the moving platform.
async fn change_rows(cells: &CellRows) {
    let (jobs, events) = (table("jobs"), table("job_events"));
    let mut unit = cells.begin(Mode::Write).await.unwrap();
    let gone = id_of(MOVING, 3);
    let of_job = Filter::eq("job_id", &*gone);
    assert_eq!(unit.delete(events, &of_job).await.unwrap(), 1);
    let deleted = unit.delete(jobs, &Filter::eq("id", &*gone)).await;
    assert_eq!(deleted.unwrap(), 1);
    let first = Filter::eq("id", &*id_of(MOVING, 1));
    let set = [("kind", Value::text("changed")), (VERSION, Value::Int(2))];
    assert_eq!(unit.update(jobs, &first, &set).await.unwrap(), 1);
    unit.commit().await.unwrap();
    add_rows(cells, &[jobs, events, table("audit_seals")]).await;
}

/// Sets the status of a job of the moving platform.
async fn set_status(cells: &CellRows, number: u32, status: &str) {
    let mut unit = cells.begin(Mode::Write).await.unwrap();
    let of_job = Filter::eq("id", &*id_of(MOVING, number));
    let set = [("status", Value::text(status))];
    let changed = unit.update(table("jobs"), &of_job, &set).await;
    assert_eq!(changed.unwrap(), 1);
    unit.commit().await.unwrap();
}

#[tokio::test]
async fn a_unique_value_that_another_row_has_now_does_not_stop_a_move() {
    let cells = open_filled(&memories(), 1).await;
    let mut unit = cells.begin(Mode::Write).await.unwrap();
    // More than a page.
    let jobs = (100..1_000).map(|number| row(table("jobs"), MOVING, number));
    unit.insert_many(table("jobs"), jobs.collect())
        .await
        .unwrap();
    unit.commit().await.unwrap();
    set_status(&cells, 999, "RUNNING").await;
    move_to(&cells, "b", &WITHOUT_SWITCH).await.unwrap_err();
    set_status(&cells, 999, "QUEUED").await;
    set_status(&cells, 100, "RUNNING").await;
    let before = digests(&cells).await;
    move_to(&cells, "b", &AT_ONCE).await.unwrap();
    assert_same(&digests(&cells).await, &before, "");
}

#[tokio::test]
async fn a_move_whose_process_died_at_any_call_can_be_continued() {
    let mut continued = 0;
    for store in 0..3 {
        for call in (1..).step_by(11) {
            let inner = memories();
            open_filled(&inner, 2).await;
            let faults = inner.clone().map(FaultStore::new);
            let rows = faults
                .clone()
                .map(|rows| Arc::new(rows) as Arc<dyn RowStore>);
            let cells = over(&rows).await.unwrap();
            let before = digests(&cells).await;
            faults[store].fail_from_call(call);
            let died = move_to(&cells, "b", &AT_ONCE).await;
            let has_failed = faults[store].has_failed();
            faults[store].fail_call(u32::MAX);
            let cells = over(&rows).await.unwrap();
            cells.end_abandoned(Duration::ZERO).await.unwrap();
            assert_same(
                &digests(&cells).await,
                &before,
                &format!("after {call} of {store}"),
            );
            match move_to(&cells, "b", &AT_ONCE).await {
                Ok(_) => continued += 1,
                Err(MoveError::AlreadyThere(_)) => {}
                Err(error) => panic!("call {call} of store {store}: {error:?}"),
            }
            assert_same(
                &digests(&cells).await,
                &before,
                &format!("call {call} of {store}"),
            );
            let [home, a, _] = &inner;
            let moving = Filter::eq("id", MOVING);
            for rows in [home, a] {
                let mut unit = rows.begin(Mode::Auto).await.unwrap();
                assert_eq!(unit.count(table("platforms"), &moving).await.unwrap(), 0);
            }
            if !has_failed {
                died.unwrap();
                break;
            }
        }
    }
    assert!(continued > 10, "only {continued} moves were continued");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_moves_and_a_cancellation_at_the_same_time_lose_nothing() {
    for _ in 0..20 {
        let cells = open_filled(&memories(), 4).await;
        let before = digests(&cells).await;
        let moves = [0; 2].map(|_| {
            let cells = cells.clone();
            tokio::spawn(async move { move_to(&cells, "b", &AT_ONCE).await.is_ok() })
        });
        let cancelling = cells.clone();
        let cancelled = tokio::spawn(async move { cancelling.cancel_move(MOVING).await.is_ok() });
        for ended in moves {
            ended.await.unwrap();
        }
        cancelled.await.unwrap();
        assert_same(&digests(&cells).await, &before, "");
        // Whatever is left of them can be ended.
        match move_to(&cells, "b", &AT_ONCE).await {
            Ok(_) | Err(MoveError::AlreadyThere(_)) => {}
            Err(error) => panic!("{error:?}"),
        }
        assert_same(&digests(&cells).await, &before, "");
        set_status(&cells, 1, "DONE").await;
        let changed = digests(&cells).await;
        move_to(&cells, "a", &AT_ONCE).await.unwrap();
        assert_same(&digests(&cells).await, &changed, "");
    }
}

/// Adds 1 to the version of the platform and appends an entry to its log. Returns the new version.
async fn write(cells: &CellRows, mode: Mode, number: u32) -> Result<i64, StoreError> {
    let platforms = table("platforms");
    let mut unit = cells.begin(mode).await?;
    let mut old = Row::new();
    let mut visit = |row: &dyn ReadRow| {
        old = platforms.copy_row(row)?;
        Ok(())
    };
    unit.lock(platforms, &Value::text(MOVING), &mut visit)
        .await?;
    let version = old.last().and_then(Value::as_int).unwrap() + 1;
    let mut new = old.clone();
    *new.last_mut().unwrap() = Value::Int(version);
    unit.replace_many(platforms, vec![Replacement { old, new }])
        .await?;
    let entries = table("audit_entries");
    unit.append(entries, vec![row(entries, MOVING, number)])
        .await?;
    unit.commit().await?;
    Ok(version)
}

async fn version(unit: &mut dyn RowTx) -> i64 {
    let mut version = 0;
    let mut visit = |row: &dyn ReadRow| {
        version = row
            .read(table("platforms").columns.len() - 1)?
            .as_int()
            .unwrap();
        Ok(())
    };
    unit.get(table("platforms"), MOVING, &Filter::all(), &mut visit)
        .await
        .unwrap();
    version
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_change_is_lost_or_hidden_while_a_platform_moves() {
    let (rows, _databases) = databases().await;
    let here = open_filled(&rows, 3).await;
    let there = over(&rows).await.unwrap();
    let (has_ended, acknowledged) = (AtomicBool::new(false), AtomicI64::new(1));
    let numbers = AtomicI64::new(1_000);
    let writer = async |cells: &CellRows, mode| {
        let mut retries = 0_u32;
        while !has_ended.load(Ordering::SeqCst) {
            let number = numbers.fetch_add(1, Ordering::SeqCst);
            match write(cells, mode, number.try_into().unwrap()).await {
                Ok(version) => {
                    acknowledged.fetch_max(version, Ordering::SeqCst);
                }
                Err(StoreError::Retry(_)) => retries += 1,
                Err(error) => panic!("{error:?}"),
            }
        }
        retries
    };
    let reader = async |cells: &CellRows, mode| {
        let mut reads = 0_u32;
        while !has_ended.load(Ordering::SeqCst) {
            let expected = acknowledged.load(Ordering::SeqCst);
            let mut unit = cells.begin(mode).await.unwrap();
            let found = version(unit.as_mut()).await;
            assert!(found >= expected, "read {found} after {expected}");
            reads += 1;
        }
        reads
    };
    let moves = async {
        let options = MoveOptions {
            // Units of this test are short.
            settle_time: Duration::from_secs(4),
            ..MoveOptions::default()
        };
        let mut pauses = Vec::new();
        let mut watch = |progress| {
            if let MoveProgress::Switched { pause } = progress {
                pauses.push(pause);
            }
        };
        let moved = here.move_platform(MOVING, "b", &options, &mut watch).await;
        has_ended.store(true, Ordering::SeqCst);
        moved.unwrap();
        pauses
    };
    let (pauses, ..) = tokio::join!(
        moves,
        writer(&here, Mode::Write),
        writer(&there, Mode::ReadCommitted),
        writer(&there, Mode::Write),
        reader(&here, Mode::Auto),
        reader(&there, Mode::Read),
    );
    assert_eq!(pauses.len(), 1);
    let writes = acknowledged.load(Ordering::SeqCst) - 1;
    assert!(writes > 100, "only {writes} writes");
    let of_platform = Filter::eq("platform_id", MOVING);
    for cells in [&here, &there] {
        let mut unit = cells.begin(Mode::Read).await.unwrap();
        assert_eq!(version(unit.as_mut()).await, writes + 1);
        let entries = unit.count(table("audit_entries"), &of_platform).await;
        assert_eq!(i64::try_from(entries.unwrap()).unwrap(), writes + 3);
    }
}
