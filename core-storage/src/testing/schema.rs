//! Reads the schema of a database as a set of lines, without the order of columns, so that schemas can be compared.

use std::collections::BTreeSet;

use tokio_postgres::{Client, Error};

use crate::sql::ddl::{Dialect, guards};
use crate::tables;

/// Returns the columns, constraints, tables, indexes and triggers of a SQLite database, without the table of migrations
/// and SQLite's own tables.
///
/// # Errors
/// The error of the driver if a query fails.
#[cfg(feature = "sqlite")]
pub fn sqlite_schema(
    connection: &rusqlite::Connection,
) -> Result<BTreeSet<String>, rusqlite::Error> {
    let mut read = connection.prepare(
        "SELECT type, tbl_name, sql FROM sqlite_schema \
         WHERE sql IS NOT NULL AND tbl_name <> 'schema_migrations' \
         AND tbl_name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )?;
    let statement = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let statements = read.query_map([], statement)?;
    let statements: Vec<(String, String, String)> = statements.collect::<Result<_, _>>()?;
    let mut lines = BTreeSet::new();
    for (kind, table, sql) in statements {
        match (kind.as_str(), sql.split_once('('), sql.rsplit_once(')')) {
            ("table", Some((head, _)), Some((body, tail))) => {
                lines.insert(format!("{}{tail}", head.trim()));
                let columns = split_columns(&body[head.len() + 1..]);
                lines.extend(columns.iter().map(|column| format!("{table}: {column}")));
            }
            _ => {
                lines.insert(sql);
            }
        }
    }
    Ok(lines)
}

/// Splits the text at the commas outside of parentheses.
#[cfg(feature = "sqlite")]
fn split_columns(body: &str) -> Vec<String> {
    let mut columns = vec![String::new()];
    let mut depth = 0;
    for character in body.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        match columns.last_mut() {
            Some(column) if character != ',' || depth > 0 => column.push(character),
            _ => columns.push(String::new()),
        }
    }
    columns
        .iter()
        .map(|column| column.trim().to_owned())
        .collect()
}

/// Returns the columns, constraints, indexes and triggers of a Postgres database, without the table of migrations.
///
/// # Errors
/// The error of the driver if a query fails.
pub async fn postgres_schema(connection: &Client) -> Result<BTreeSet<String>, Error> {
    let lines = connection.query(
        "SELECT format('%s.%s %s null=%s default=%s collation=%s', table_name, column_name, data_type, \
             is_nullable, column_default, collation_name) FROM information_schema.columns \
         WHERE table_schema = 'public' AND table_name <> 'schema_migrations' \
         UNION ALL SELECT indexdef FROM pg_indexes \
         WHERE schemaname = 'public' AND tablename <> 'schema_migrations' \
         UNION ALL SELECT format('%s: %s', c.relname, pg_get_constraintdef(k.oid)) \
         FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid \
         WHERE k.connamespace = 'public'::regnamespace AND c.relname <> 'schema_migrations' \
         UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal",
        &[],
    );
    lines.await?.iter().map(|line| line.try_get(0)).collect()
}

/// Drops the triggers that protect append-only tables, for tests that must change such rows.
///
/// # Errors
/// The error of the driver if a statement fails.
#[cfg(feature = "sqlite")]
pub fn drop_sqlite_guards(path: &std::path::Path) -> Result<(), rusqlite::Error> {
    rusqlite::Connection::open(path)?.execute_batch(&dropped_guards(Dialect::Sqlite))
}

/// Like [`drop_sqlite_guards`], for a Postgres database.
///
/// # Errors
/// The error of the driver if a statement fails.
pub async fn drop_postgres_guards(connection: &Client) -> Result<(), Error> {
    let dropped = dropped_guards(Dialect::Postgres);
    connection.batch_execute(&dropped).await
}

fn dropped_guards(dialect: Dialect) -> String {
    let guards = tables::all()
        .into_iter()
        .flat_map(|table| guards(table, dialect));
    guards.map(|guard| guard.drop).collect()
}
