//! A store over several cells, one of which cannot be reached.

use std::time::Duration;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use core_domain::testing::named_uuid;
use core_storage::cells::{CellRows, HOME_NAME};
use core_storage::conformance::{ITEMS, item};
use core_storage::fault::FaultStore;
use core_storage::{Filter, ReadRow, Row, RowStore, Select, Table, Type, Value};

use super::cells::{count, decide, faulty, memories, over, over_named, table, write_in_two};

/// The keys of the rows that [`write_in_two`] writes: of the second cell beside home, and of the first one.
const KEYS: [&str; 2] = ["p-0-1", "p-1-1"];

/// A little longer than two questions to a cell take. The clock of the tests that use it is paused.
const QUESTIONS: Duration = Duration::from_millis(2_100);

/// Cells with a row in each of two, the first of which cannot be reached.
async fn with_outage() -> (CellRows, [FaultStore; 3]) {
    let (cells, faults, _) = faulty().await;
    write_in_two(&cells).await.unwrap();
    faults[1].fail_from_call(1);
    (cells, faults)
}

async fn get(cells: &CellRows, mode: Mode, key: &str) -> Result<bool, StoreError> {
    let mut unit = cells.begin(mode).await?;
    let mut is_found = false;
    let mut visit = |_: &dyn ReadRow| {
        is_found = true;
        Ok(())
    };
    let found = unit.get(&ITEMS, key, &Filter::all(), &mut visit).await;
    unit.rollback().await;
    found.map(|()| is_found)
}

async fn select(cells: &CellRows, select: &Select) -> Result<usize, StoreError> {
    let mut unit = cells.begin(Mode::Read).await?;
    let mut rows = 0;
    let mut visit = |_: &dyn ReadRow| {
        rows += 1;
        Ok(())
    };
    let read = unit.select(select, &mut visit).await;
    unit.rollback().await;
    read.map(|()| rows)
}

fn with_keys(keys: &[&str]) -> Filter {
    Filter::In("id", keys.iter().map(|key| Value::text(key)).collect())
}

#[tokio::test]
async fn a_row_is_found_by_its_key_while_another_cell_cannot_be_reached() {
    let (cells, _faults) = with_outage().await;
    for mode in [Mode::Auto, Mode::Read, Mode::Write] {
        assert!(get(&cells, mode, KEYS[0]).await.unwrap());
        // It could be in the other cell.
        let missing = get(&cells, mode, "p-0-2").await;
        assert!(matches!(missing, Err(StoreError::Unavailable(_))));
    }
}

#[tokio::test]
async fn rows_are_selected_changed_and_deleted_by_keys_if_all_are_in_cells_that_can_be_reached() {
    let (cells, _faults) = with_outage().await;
    let items = Select::of(&ITEMS);
    let by_keys = |keys| items.clone().filter(with_keys(keys));
    assert_eq!(select(&cells, &by_keys(&KEYS[..1])).await.unwrap(), 1);
    let both = select(&cells, &by_keys(&KEYS)).await;
    assert!(matches!(both, Err(StoreError::Unavailable(_))));
    let mut unit = cells.begin(Mode::Write).await.unwrap();
    let first = with_keys(&KEYS[..1]);
    let set = [("rank", Value::Int(5))];
    assert_eq!(unit.update(&ITEMS, &first, &set).await.unwrap(), 1);
    assert_eq!(unit.delete(&ITEMS, &first).await.unwrap(), 1);
    unit.commit().await.unwrap();
    let mut unit = cells.begin(Mode::Write).await.unwrap();
    let deleted = unit.delete(&ITEMS, &with_keys(&KEYS)).await;
    assert!(matches!(deleted, Err(StoreError::Unavailable(_))));
}

#[tokio::test]
async fn only_a_query_for_work_leaves_out_a_cell_that_cannot_be_reached() {
    let (cells, _faults) = with_outage().await;
    let all = Select::of(&ITEMS);
    assert_eq!(
        select(&cells, &all.clone().skip_unreachable())
            .await
            .unwrap(),
        1
    );
    let list = select(&cells, &all).await;
    assert!(matches!(list, Err(StoreError::Unavailable(_))));
    let mut unit = cells.begin(Mode::Read).await.unwrap();
    let counted = unit.count(&ITEMS, &Filter::all()).await;
    assert!(matches!(counted, Err(StoreError::Unavailable(_))));
}

#[tokio::test(start_paused = true)]
async fn a_cell_is_asked_once_a_second_and_units_that_need_it_fail_while_it_is_away() {
    let (cells, faults) = with_outage().await;
    let read = async || get(&cells, Mode::Read, KEYS[1]).await;
    let states = || -> Vec<_> {
        let states = cells.cells().into_iter();
        states.map(|cell| (cell.name, cell.is_reached)).collect()
    };
    assert!(matches!(read().await, Err(StoreError::Unavailable(_))));
    assert_eq!(states(), [("a", true), ("b", true)]);
    tokio::time::sleep(QUESTIONS).await;
    assert_eq!(states(), [("a", false), ("b", true)]);
    faults[1].fail_call(u32::MAX);
    // The cell works again, which has not been found yet.
    for _ in 0..20 {
        assert!(matches!(read().await, Err(StoreError::Unavailable(_))));
    }
    tokio::time::sleep(QUESTIONS).await;
    assert!(read().await.unwrap());
    assert_eq!(states(), [("a", true), ("b", true)]);
}

#[tokio::test(start_paused = true)]
async fn what_was_decided_during_an_outage_is_visible_to_the_first_unit_after_it() {
    let (cells, faults, inner) = faulty().await;
    let mut unit = inner[1].begin(Mode::Write).await.unwrap();
    unit.insert(&ITEMS, item("p-1", "1", 0)).await.unwrap();
    let name = cells.prepared_name("a", "first");
    unit.prepare(&name).await.unwrap();
    decide(&inner).await;
    faults[1].fail_from_call(1);
    tokio::time::sleep(QUESTIONS).await;
    let outage = get(&cells, Mode::Read, KEYS[1]).await;
    assert!(matches!(outage, Err(StoreError::Unavailable(_))));
    faults[1].fail_call(u32::MAX);
    tokio::time::sleep(QUESTIONS).await;
    assert!(get(&cells, Mode::Read, KEYS[1]).await.unwrap());
}

/// Returns a row of the table whose key is this, and that is otherwise empty.
fn row_with_key(table: &Table, key: &str) -> Row {
    let values = table.columns.iter().map(|column| match column.kind {
        _ if column.nullable => Value::Null,
        Type::Text | Type::Uuid | Type::Json if column.name == table.key() => Value::text(key),
        Type::Text | Type::Json => Value::text("x"),
        Type::Uuid => Value::text(&named_uuid("x")),
        Type::Int => Value::Int(1),
        Type::Bool => Value::Bool(false),
    });
    values.collect()
}

#[tokio::test]
async fn a_platform_that_a_process_without_cells_created_stays_at_home() {
    // A process with cells would create it in the second cell.
    let platform = named_uuid("p-5");
    let chain = format!("platform:{platform}");
    for (name, key) in [("platforms", &platform), ("audit_heads", &chain)] {
        let rows = memories();
        let cells = over(&rows).await.unwrap();
        let mut home = rows[0].begin(Mode::Write).await.unwrap();
        let table = table(name);
        home.insert(table, row_with_key(table, key)).await.unwrap();
        home.commit().await.unwrap();
        let mut unit = cells.begin(Mode::Write).await.unwrap();
        unit.insert(&ITEMS, item(&platform, "1", 0)).await.unwrap();
        unit.commit().await.unwrap();
        assert_eq!(count(&rows[0]).await, 1, "{name}");
        assert_eq!(count(&rows[2]).await, 0, "{name}");
    }
}

#[tokio::test]
async fn a_configuration_without_a_cell_that_has_platforms_is_refused() {
    let [home, a, b] = memories();
    let all = [(HOME_NAME, &home, false), ("a", &a, true), ("b", &b, true)];
    let cells = over_named(&all).await.unwrap();
    let mut unit = cells.begin(Mode::Write).await.unwrap();
    unit.insert(&ITEMS, item("p-0", "1", 0)).await.unwrap();
    unit.commit().await.unwrap();
    over_named(&all).await.unwrap();
    let refused = over_named(&all[..2]).await.unwrap_err().to_string();
    assert!(refused.contains("p-0"), "{refused}");
    assert!(refused.contains("cell b"), "{refused}");
}
