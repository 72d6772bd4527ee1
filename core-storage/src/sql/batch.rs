//! Many rows in one statement, on databases with arrays: one array for each column.

use super::dialect::Dialect;
use super::statement::Bind;
use super::text::Writer;
use crate::row_store::Replacement;
use crate::table::{Table, Type, VERSION};
use crate::value::{Row, Value, ValueRef};

/// Inserts the rows that violate no unique index; answers the keys of those.
pub(super) fn insert_rows<'q>(w: &mut Writer<'q>, table: &Table, rows: &'q [Row]) {
    insert_new_rows(w, table, rows);
    w.sql(" ON CONFLICT DO NOTHING RETURNING ")
        .name(table.key());
}

/// Inserts rows that conflict with none.
pub(super) fn insert_new_rows<'q>(w: &mut Writer<'q>, table: &Table, rows: &'q [Row]) {
    w.sql("INSERT INTO ").name(table.name).sql(" (");
    w.columns(table, "").sql(") SELECT * FROM unnest(");
    w.joined(table.columns.iter().enumerate(), ", ", |w, (at, column)| {
        array(w, column.kind, rows, at);
    });
    w.sql(")");
}

/// Has an insert put its rows in the place of those with their keys. An insert that meets a row takes no predicate locks,
/// where an update that looks for the row would lock the range of keys around it.
pub(super) fn or_replace(w: &mut Writer<'_>, table: &Table) {
    w.sql(" ON CONFLICT (")
        .name(table.key())
        .sql(") DO UPDATE SET ");
    w.joined(table.columns.iter().skip(1), ", ", |w, column| {
        w.name(column.name).sql(" = excluded.").name(column.name);
    });
}

/// Has an insert lock the rows with the keys of its own, and answer all of them as they are stored.
pub(super) fn or_lock(w: &mut Writer<'_>, table: &Table) {
    w.sql(" ON CONFLICT (")
        .name(table.key())
        .sql(") DO UPDATE SET ");
    w.name(VERSION)
        .sql(" = ")
        .name(table.name)
        .sql(".")
        .name(VERSION);
    w.sql(" RETURNING ").columns(table, "");
}

/// Changes the rows that are found by key and version; these columns of them.
pub(super) fn replace_rows<'q>(
    w: &mut Writer<'q>,
    table: &Table,
    rows: &'q [Replacement],
    columns: &[usize],
) {
    let changed = || {
        columns
            .iter()
            .filter_map(|at| Some((*at, table.columns.get(*at)?)))
    };
    let version = table.columns.len().saturating_sub(1);
    w.sql("UPDATE ").name(table.name).sql(" SET ");
    w.joined(changed(), ", ", |w, (_, column)| {
        w.name(column.name).sql(" = n.").name(column.name);
    });
    w.sql(" FROM unnest(");
    array(w, Type::Text, rows.iter().map(|row| &row.old), 0);
    w.sql(", ");
    array(w, Type::Int, rows.iter().map(|row| &row.old), version);
    for (at, column) in changed() {
        w.sql(", ");
        array(w, column.kind, rows.iter().map(|row| &row.new), at);
    }
    w.sql(") AS n (\"old key\", \"old version\"");
    for (_, column) in changed() {
        w.sql(", ").name(column.name);
    }
    w.sql(") WHERE ")
        .name(table.name)
        .sql(".")
        .name(table.key());
    w.sql(" = n.\"old key\" AND ")
        .name(table.name)
        .sql(".")
        .name(VERSION);
    w.sql(" = n.\"old version\"");
}

/// The values of one column of the rows.
fn array<'q>(w: &mut Writer<'q>, kind: Type, rows: impl IntoIterator<Item = &'q Row>, at: usize) {
    let value = |row: &'q Row| row.get(at).map_or(ValueRef::Null, Value::as_ref);
    w.bind(Bind::Array(kind, rows.into_iter().map(value).collect()));
    w.sql(Dialect::array_cast(kind));
}
