//! Statements for many rows, on databases with arrays. Each column is one array.

use super::text::StatementWriter;
use crate::row_store::Replacement;
use crate::table::{Table, Type, VERSION};
use crate::value::{Row, Value, ValueRef};

/// Writes an insert of the rows that violate no unique index. The statement returns the keys of the inserted rows.
pub(super) fn insert_rows<'q>(w: &mut StatementWriter<'q>, table: &Table, rows: &'q [Row]) {
    insert_new_rows(w, table, rows);
    w.sql(" ON CONFLICT DO NOTHING RETURNING ")
        .name(table.key());
}

/// Writes an insert of rows that cannot conflict.
pub(super) fn insert_new_rows<'q>(w: &mut StatementWriter<'q>, table: &Table, rows: &'q [Row]) {
    w.sql("INSERT INTO ").name(table.name).sql(" (");
    w.columns(table, "").sql(") SELECT * FROM unnest(");
    w.join_parts(table.columns.iter().enumerate(), ", ", |w, (at, column)| {
        array(w, column.kind, rows, at);
    });
    w.sql(")");
}

/// Extends an insert to replace the stored rows with the same keys. An insert that finds a row takes no predicate
/// locks. An update that looks for the row would lock the range of keys around it.
pub(super) fn or_replace(w: &mut StatementWriter<'_>, table: &Table) {
    w.sql(" ON CONFLICT (")
        .name(table.key())
        .sql(") DO UPDATE SET ");
    w.join_parts(table.columns.iter().skip(1), ", ", |w, column| {
        w.name(column.name).sql(" = excluded.").name(column.name);
    });
}

/// Extends an insert to lock the stored rows with the same keys, and to return all rows as they are stored.
pub(super) fn or_lock(w: &mut StatementWriter<'_>, table: &Table) {
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

/// Writes an update that changes nothing but locks the row with a key, and returns it.
pub(super) fn lock<'q>(w: &mut StatementWriter<'q>, table: &Table, key: &'q Value) {
    w.sql("UPDATE ").name(table.name).sql(" SET ");
    w.name(VERSION).sql(" = ").name(VERSION).sql(" WHERE ");
    w.name(table.key()).sql(" = ");
    w.value(table.kind_of(table.key()), key.as_ref());
    w.sql(" RETURNING ").columns(table, "");
}

/// Writes an update of these columns in rows that are identified by key and version.
pub(super) fn replace_rows<'q>(
    w: &mut StatementWriter<'q>,
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
    w.join_parts(changed(), ", ", |w, (_, column)| {
        w.name(column.name).sql(" = n.").name(column.name);
    });
    w.sql(" FROM unnest(");
    let key = table.kind_of(table.key());
    array(w, key, rows.iter().map(|row| &row.old), 0);
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

/// Binds the values of one column of the rows as an array.
fn array<'q>(
    w: &mut StatementWriter<'q>,
    kind: Type,
    rows: impl IntoIterator<Item = &'q Row>,
    at: usize,
) {
    let value = |row: &'q Row| row.get(at).map_or(ValueRef::Null, Value::as_ref);
    w.cast_array(kind, rows.into_iter().map(value).collect());
}
