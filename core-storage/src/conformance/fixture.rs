//! The tables that the cases use, and helpers to access its rows.

use std::pin::Pin;
use std::sync::Arc;

use core_domain::kernel::StoreError;
use core_domain::port::Mode;

use crate::filter::Filter;
use crate::query::Select;
use crate::row_store::{RowStore, RowTx};
use crate::table::{Column, Index, IndexPredicate, Table, Type, Unique, VERSION};
use crate::value::{ReadRow, Row, Value};

const fn column(name: &'static str, kind: Type, nullable: bool) -> Column {
    Column {
        name,
        kind,
        nullable,
    }
}

/// The table that the cases use.
pub static ITEMS: Table = Table {
    name: "conformance_items",
    columns: &[
        column("id", Type::Text, false),
        column("platform_id", Type::Text, false),
        column("name", Type::Text, true),
        column("rank", Type::Int, false),
        column("amount", Type::Int, true),
        column("flag", Type::Bool, true),
        column("data", Type::Json, true),
        column("state", Type::Text, false),
        column("parent", Type::Text, true),
        // A reserved word of SQL.
        column("desc", Type::Text, true),
        column(VERSION, Type::Int, false),
    ],
    uniques: &[
        Unique {
            name: "name",
            columns: &["platform_id", "name"],
            predicates: &[],
        },
        Unique {
            name: "one_active",
            columns: &["platform_id"],
            predicates: &[
                IndexPredicate::Is("state", "active"),
                IndexPredicate::IsNull("desc"),
            ],
        },
    ],
    indexes: &[
        Index::on(&["platform_id", "rank"]),
        Index::on(&["rank"]),
        Index::on(&["platform_id", "amount"]).filter_by(&[
            IndexPredicate::OneOf("state", &["idle", "active"]),
            IndexPredicate::IsNull("desc"),
        ]),
        Index::on(&["desc"]).filter_by(&[IndexPredicate::NotNull("desc")]),
    ],
    parent: Some("parent"),
    append_only: false,
    archive: None,
};

/// A table whose ids are UUIDs.
pub(super) static REFERENCES: Table = Table {
    name: "conformance_references",
    columns: &[
        column("id", Type::Uuid, false),
        column("parent", Type::Uuid, true),
        column(VERSION, Type::Int, false),
    ],
    uniques: &[],
    indexes: &[],
    parent: Some("parent"),
    append_only: false,
    archive: None,
};

/// The tables that an engine under test needs in addition to those of the records.
pub const TABLES: &[&Table] = &[&ITEMS, &REFERENCES];

pub(super) type Work<'t, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 't>>;

/// Runs a write unit. Repeats it if it conflicts with a concurrent one.
pub(super) async fn write<T>(
    store: &Arc<dyn RowStore>,
    body: impl for<'t> Fn(&'t mut dyn RowTx) -> Work<'t, T>,
) -> Result<T, StoreError> {
    write_in(Mode::Write, store, body).await
}

/// Like [`write`], in another mode that allows writes.
pub(super) async fn write_in<T>(
    mode: Mode,
    store: &Arc<dyn RowStore>,
    body: impl for<'t> Fn(&'t mut dyn RowTx) -> Work<'t, T>,
) -> Result<T, StoreError> {
    for _ in 0..200 {
        let mut tx = store.begin(mode).await?;
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
    Err(StoreError::retry("every run met a conflict"))
}

/// Creates a row of [`ITEMS`] with NULL in every nullable column. Its key consists of platform and id.
#[must_use]
pub fn item(platform: &str, id: &str, rank: i64) -> Row {
    let mut row = vec![Value::Null; ITEMS.columns.len()];
    set(&mut row, "id", Value::text(&format!("{platform}-{id}")));
    set(&mut row, "platform_id", Value::text(platform));
    set(&mut row, "rank", Value::Int(rank));
    set(&mut row, "state", Value::text("idle"));
    set(&mut row, VERSION, Value::Int(1));
    row
}

pub(super) fn set(row: &mut Row, column: &str, value: Value) {
    if let Some(stored) = ITEMS.column_index(column).and_then(|at| row.get_mut(at)) {
        *stored = value;
    }
}

pub(super) fn with(mut row: Row, column: &str, value: Value) -> Row {
    set(&mut row, column, value);
    row
}

pub(super) async fn add(store: &Arc<dyn RowStore>, rows: Vec<Row>) {
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

pub(super) fn of(platform: &str) -> Select {
    Select::of(&ITEMS).filter(Filter::eq("platform_id", platform))
}

pub(super) async fn read(store: &Arc<dyn RowStore>, select: &Select) -> Vec<Row> {
    match try_read(store, select).await {
        Ok(rows) => rows,
        Err(error) => panic!("a read failed: {error}"),
    }
}

pub(super) async fn try_read(
    store: &Arc<dyn RowStore>,
    select: &Select,
) -> Result<Vec<Row>, StoreError> {
    let mut tx = store.begin(Mode::Auto).await?;
    let rows = rows_of(tx.as_mut(), select).await?;
    tx.commit().await?;
    Ok(rows)
}

/// Opens a unit of work.
pub(super) async fn open(store: &Arc<dyn RowStore>, mode: Mode) -> Box<dyn RowTx> {
    match store.begin(mode).await {
        Ok(tx) => tx,
        Err(error) => panic!("a unit can be opened: {error}"),
    }
}

/// Returns the rows of a query. Panics if the unit cannot read them.
pub(super) async fn rows_or_panic(tx: &mut Box<dyn RowTx>, select: &Select) -> Vec<Row> {
    match rows_of(tx.as_mut(), select).await {
        Ok(rows) => rows,
        Err(error) => panic!("a read failed: {error}"),
    }
}

/// Returns the number of the platform's rows that a unit sees.
pub(super) async fn visible(tx: &mut Box<dyn RowTx>, platform: &str) -> usize {
    rows_or_panic(tx, &of(platform)).await.len()
}

/// Returns the rows of a query inside a unit.
pub(super) async fn rows_of(tx: &mut dyn RowTx, select: &Select) -> Result<Vec<Row>, StoreError> {
    let mut rows = Vec::new();
    let mut visit = |row: &dyn ReadRow| {
        rows.push(select.table.copy_row(row)?);
        Ok(())
    };
    tx.select(select, &mut visit).await?;
    Ok(rows)
}

/// Returns the position of a row in the order of a query.
pub(super) fn position(select: &Select, row: &Row) -> Vec<Value> {
    match select.position_of(row) {
        Ok(position) => position,
        Err(error) => panic!("a row has a position: {error}"),
    }
}

pub(super) fn ids(rows: &[Row]) -> Vec<String> {
    let id = |row: &Row| {
        ITEMS
            .value(row, "id")
            .as_text()
            .unwrap_or_default()
            .to_owned()
    };
    rows.iter().map(id).collect()
}

pub(super) fn keys(platform: &str, ids: &[&str]) -> Vec<String> {
    ids.iter().map(|id| format!("{platform}-{id}")).collect()
}
