//! Queries for the platforms of an organization or with a slug, while and after a platform moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;
use core_storage::cells::{CellRows, MoveOptions};
use core_storage::{Filter, Row, RowStore, Value};

use crate::cells::{databases, memories, over, table};
use crate::moves::{AT_ONCE, MOVING, STAYING, move_to, row};

/// The organization of a platform.
const ORGANIZATION: &str = "00000009-0000-7000-8000-000000000000";

/// Returns the row of a platform that belongs to an organization and is not deleted. All have the same slug.
fn of_organization(platform: &str) -> Row {
    let platforms = table("platforms");
    let mut row = row(platforms, platform, 0);
    let mut set = |column, value| row[platforms.column_index(column).unwrap()] = value;
    set("organization_id", Value::text(ORGANIZATION));
    set("slug", Value::text("acme"));
    set("deleted_at", Value::Null);
    row
}

/// Counts the platforms that match. Returns `None` if the unit must be run again.
async fn count_platforms(cells: &CellRows, mode: Mode, filter: &Filter) -> Option<u64> {
    let mut unit = cells.begin(mode).await.unwrap();
    let counted = unit.count(table("platforms"), filter).await;
    unit.rollback().await;
    match counted {
        Err(StoreError::Retry(_)) => None,
        counted => Some(counted.unwrap()),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_platform_is_found_by_its_organization_at_any_time_of_its_move_postgres() {
    let (rows, _databases) = databases().await;
    let cells = Arc::new(over(&rows).await.unwrap());
    let mut unit = cells.begin(Mode::Write).await.unwrap();
    let platform = of_organization(MOVING);
    unit.insert(table("platforms"), platform).await.unwrap();
    unit.commit().await.unwrap();
    let has_ended = Arc::new(AtomicBool::new(false));
    let readers = [Mode::Write, Mode::Read].map(|mode| {
        let (cells, has_ended) = (Arc::clone(&cells), Arc::clone(&has_ended));
        tokio::spawn(async move {
            let of_organization = Filter::eq("organization_id", ORGANIZATION);
            while !has_ended.load(Ordering::Relaxed) {
                let counted = count_platforms(&cells, mode, &of_organization).await;
                assert!(matches!(counted, None | Some(1)), "{mode:?}: {counted:?}");
            }
        })
    });
    let options = MoveOptions {
        settle_time: Duration::from_millis(300),
        ..AT_ONCE
    };
    for cell in ["b", "home", "a"] {
        move_to(&cells, cell, &options).await.unwrap();
    }
    has_ended.store(true, Ordering::Relaxed);
    for reader in readers {
        reader.await.unwrap();
    }
}

/// Moves a platform that a process without cells has written at home.
async fn moves_rows_of_a_process_without_cells(rows: [Arc<dyn RowStore>; 3]) {
    let cells = over(&rows).await.unwrap();
    let platforms = table("platforms");
    let mut home = rows[0].begin(Mode::Write).await.unwrap();
    let platform = of_organization(MOVING);
    home.insert(platforms, platform).await.unwrap();
    home.commit().await.unwrap();
    // Another row makes the platform known.
    let mut unit = cells.begin(Mode::Write).await.unwrap();
    let entity = row(table("entities"), MOVING, 1);
    unit.insert(table("entities"), entity).await.unwrap();
    unit.commit().await.unwrap();
    let with_slug = Filter::eq("slug", "acme").and(Filter::IsNull("deleted_at"));
    let belonging = Filter::eq("organization_id", ORGANIZATION);
    for cell in ["a", "b", "home"] {
        move_to(&cells, cell, &AT_ONCE).await.unwrap();
        for filter in [&with_slug, &belonging] {
            let counted = count_platforms(&cells, Mode::Read, filter).await;
            assert_eq!(counted, Some(1), "in {cell}: {filter:?}");
        }
        let other = of_organization(STAYING);
        let mut unit = cells.begin(Mode::Write).await.unwrap();
        let taken = unit.insert(platforms, other).await;
        assert!(matches!(
            taken,
            Err(StoreError::Conflict { index: "slug", .. })
        ));
        unit.rollback().await;
    }
}

#[tokio::test]
async fn rows_of_a_process_without_cells_are_found_after_a_move_in_memory() {
    moves_rows_of_a_process_without_cells(memories()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_of_a_process_without_cells_are_found_after_a_move_on_postgres() {
    let (rows, _databases) = databases().await;
    moves_rows_of_a_process_without_cells(rows).await;
}
