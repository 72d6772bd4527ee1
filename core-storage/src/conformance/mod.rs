//! What every engine must do, as cases anybody can run against theirs.
//!
//! Open the engine with [`TABLES`] and call [`run`]; give [`restart`] a way to open it again, if it keeps its rows.
//! Cases share a store: each works on rows of an owner of its own.

mod isolation;
mod keyset;
mod queries;
mod races;
mod records;
mod restart;
mod rows;
mod trees;
mod uniques;

use std::pin::Pin;
use std::sync::Arc;

use core_domain::port::{Mode, StoreError};

use crate::filter::Filter;
use crate::query::Select;
use crate::row_store::{RowStore, RowTx};
use crate::table::{Column, Only, Table, Type, Unique, VERSION};
use crate::value::{Row, Value};

pub use records::records;
pub use restart::restart;

const fn column(name: &'static str, kind: Type, nullable: bool) -> Column {
    Column {
        name,
        kind,
        nullable,
    }
}

/// The table the cases work on.
pub static ITEMS: Table = Table {
    name: "conformance_items",
    columns: &[
        column("id", Type::Text, false),
        column("owner", Type::Text, false),
        column("name", Type::Text, true),
        column("rank", Type::Int, false),
        column("amount", Type::Int, true),
        column("flag", Type::Bool, true),
        column("data", Type::Json, true),
        column("state", Type::Text, false),
        column("parent", Type::Text, true),
        // A word SQL keeps for itself.
        column("desc", Type::Text, true),
        column(VERSION, Type::Int, false),
    ],
    uniques: &[
        Unique {
            name: "name",
            columns: &["owner", "name"],
            only: &[],
        },
        Unique {
            name: "one_active",
            columns: &["owner"],
            only: &[Only::Is("state", "active"), Only::IsNull("desc")],
        },
    ],
    indexes: &[&["owner", "rank"], &["rank"]],
    parent: Some("parent"),
};

/// The tables an engine under test needs besides those of the records.
pub const TABLES: &[&Table] = &[&ITEMS];

type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One thing every engine must do.
#[derive(Clone, Copy)]
pub struct Case {
    /// What it does, as a claim.
    pub name: &'static str,
    run: fn(Arc<dyn RowStore>) -> Running,
}

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Case {
    /// Runs the case on the engine.
    ///
    /// # Panics
    /// When the engine does not do it.
    pub async fn run(&self, store: Arc<dyn RowStore>) {
        (self.run)(store).await;
    }
}

macro_rules! cases {
    ($($module:ident::$case:ident),+ $(,)?) => {
        /// Every case.
        #[must_use]
        pub fn cases() -> Vec<Case> {
            vec![$(Case {
                name: concat!(stringify!($module), "::", stringify!($case)),
                run: |store| Box::pin($module::$case(store)),
            }),+]
        }
    };
}
cases! {
    rows::every_value_comes_back_as_it_was,
    rows::an_update_changes_what_is_meant_and_nothing_else,
    rows::sums_are_grouped_and_ordered,
    rows::what_a_column_cannot_hold_is_refused,
    rows::a_reader_cannot_write,
    rows::an_error_ends_the_unit,
    queries::filters_mean_the_same_as_in_memory,
    queries::nothing_is_neither_equal_nor_different,
    queries::text_sorts_by_its_bytes,
    keyset::every_row_comes_once_while_others_are_added,
    keyset::mixed_directions_agree_with_sorting,
    uniques::a_conflict_names_its_set_and_the_unit_goes_on,
    uniques::a_partial_set_covers_only_its_rows,
    uniques::an_update_into_a_taken_place_is_a_conflict,
    races::a_guarded_update_has_one_winner,
    races::a_quota_holds_under_write_skew,
    races::workers_claim_each_row_once,
    isolation::a_dropped_unit_leaves_nothing,
    isolation::a_rolled_back_unit_leaves_nothing,
    isolation::readers_see_what_is_committed_and_one_state,
    trees::walks_find_both_directions_in_order,
    trees::a_cycle_ends_the_walk,
}

/// Runs every case, one after the other.
///
/// # Panics
/// When the engine fails one; its name is printed before it runs.
#[expect(
    clippy::print_stdout,
    reason = "shown by the test runner for a failed case"
)]
pub async fn run(store: Arc<dyn RowStore>) {
    for case in cases() {
        println!("case {}", case.name);
        case.run(store.clone()).await;
    }
}

type Work<'t, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 't>>;

/// Runs a write unit, again when it lost a race.
async fn write<T>(
    store: &Arc<dyn RowStore>,
    body: impl for<'t> Fn(&'t mut dyn RowTx) -> Work<'t, T>,
) -> Result<T, StoreError> {
    for _ in 0..200 {
        let mut tx = store.begin(Mode::Write).await?;
        let outcome = match body(tx.as_mut()).await {
            Ok(value) => tx.commit().await.map(|()| value),
            Err(error) => {
                tx.rollback().await;
                Err(error)
            }
        };
        match outcome {
            Err(StoreError::Retry(_)) => tokio::task::yield_now().await,
            other => return other,
        }
    }
    Err(StoreError::Retry("lost every race".into()))
}

/// A row of [`ITEMS`] with nothing where nothing may be.
fn item(owner: &str, id: &str, rank: i64) -> Row {
    let mut row = vec![Value::Null; ITEMS.columns.len()];
    set(&mut row, "id", Value::text(&format!("{owner}-{id}")));
    set(&mut row, "owner", Value::text(owner));
    set(&mut row, "rank", Value::Int(rank));
    set(&mut row, "state", Value::text("idle"));
    set(&mut row, VERSION, Value::Int(1));
    row
}

fn set(row: &mut Row, column: &str, value: Value) {
    if let Some(held) = ITEMS.position(column).and_then(|at| row.get_mut(at)) {
        *held = value;
    }
}

fn with(mut row: Row, column: &str, value: Value) -> Row {
    set(&mut row, column, value);
    row
}

async fn add(store: &Arc<dyn RowStore>, rows: Vec<Row>) {
    let added = write(store, |tx| {
        let rows = rows.clone();
        Box::pin(async move {
            for row in rows {
                tx.insert(&ITEMS, row).await?;
            }
            Ok(())
        })
    });
    assert!(added.await.is_ok(), "rows can be added");
}

fn of(owner: &str) -> Select {
    Select::of(&ITEMS).only(Filter::eq("owner", owner))
}

async fn read(store: &Arc<dyn RowStore>, select: &Select) -> Vec<Row> {
    match try_read(store, select).await {
        Ok(rows) => rows,
        Err(error) => panic!("a read failed: {error}"),
    }
}

async fn try_read(store: &Arc<dyn RowStore>, select: &Select) -> Result<Vec<Row>, StoreError> {
    let mut tx = store.begin(Mode::Auto).await?;
    let rows = tx.select(select).await?;
    tx.commit().await?;
    Ok(rows)
}

fn ids(rows: &[Row]) -> Vec<String> {
    let id = |row: &Row| {
        ITEMS
            .value(row, "id")
            .as_text()
            .unwrap_or_default()
            .to_owned()
    };
    rows.iter().map(id).collect()
}

fn named(owner: &str, ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| format!("{owner}-{id}")).collect()
}
