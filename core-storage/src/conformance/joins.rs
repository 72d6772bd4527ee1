//! Cases for joined rows.

use std::sync::Arc;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;

use super::fixture::{ITEMS, add, item, of, with};
use crate::join::{Join, On};
use crate::query::Select;
use crate::row_store::RowStore;
use crate::value::{ReadRow, Value};

const PARENT: usize = 1;

/// The parent of a row, the parent of the parent, and the row of the same owner whose name is the parent's state.
static JOINS: &[Join] = &[
    Join {
        table: &ITEMS,
        on: &[equal("id", 0, "parent")],
    },
    Join {
        table: &ITEMS,
        on: &[equal("id", PARENT, "parent")],
    },
    Join {
        table: &ITEMS,
        on: &[
            equal("platform_id", 0, "platform_id"),
            equal("name", PARENT, "state"),
        ],
    },
];

const fn equal(column: &'static str, source: usize, source_column: &'static str) -> On {
    On {
        column,
        source,
        source_column,
    }
}

async fn select_joined_ids(
    store: &Arc<dyn RowStore>,
    select: &Select,
) -> Result<Vec<Vec<Option<String>>>, StoreError> {
    let mut found = Vec::new();
    let mut visit = |rows: &[Option<&dyn ReadRow>]| {
        let id = |row: &Option<&dyn ReadRow>| match row {
            Some(row) => Ok(row.read(0)?.as_text().map(str::to_owned)),
            None => Ok::<_, StoreError>(None),
        };
        found.push(rows.iter().map(id).collect::<Result<_, _>>()?);
        Ok(())
    };
    let mut tx = store.begin(Mode::Read).await?;
    tx.select_joined(select, JOINS, &mut visit).await?;
    tx.rollback().await;
    Ok(found)
}

pub(super) async fn each_row_is_returned_with_its_joined_rows(store: Arc<dyn RowStore>) {
    let owner = "joins";
    let below = |id, rank, parent: &str| {
        let parent = Value::text(&format!("{owner}-{parent}"));
        with(item(owner, id, rank), "parent", parent)
    };
    let rows = vec![
        with(item(owner, "top", 1), "name", Value::text("idle")),
        below("middle", 2, "top"),
        below("bottom", 3, "middle"),
        below("orphan", 4, "none"),
    ];
    add(&store, rows).await;
    let select = of(owner).order_by_desc("rank").limit(3);
    let found = match select_joined_ids(&store, &select).await {
        Ok(found) => found,
        Err(error) => panic!("rows can be joined: {error}"),
    };
    let some = |id: &str| Some(format!("{owner}-{id}"));
    let expected = vec![
        vec![some("orphan"), None, None, None],
        vec![some("bottom"), some("middle"), some("top"), some("top")],
        vec![some("middle"), some("top"), None, some("top")],
    ];
    assert_eq!(found, expected);
}
