//! The schema of a database as a set of lines, to be compared: migrated or described, the order of columns aside.

use std::collections::BTreeSet;

use tokio_postgres::{Client, Error};

/// Columns with their constraints, tables and indexes of a SQLite database, those of the migrations' own table and
/// of SQLite itself left out.
///
/// # Errors
/// The driver's.
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

/// The parts between the commas that stand in no parentheses.
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

/// Columns, constraints and indexes of a Postgres database, those of the migrations' own table left out.
///
/// # Errors
/// The driver's.
pub async fn postgres_schema(connection: &Client) -> Result<BTreeSet<String>, Error> {
    let lines = connection.query(
        "SELECT format('%s.%s %s null=%s default=%s collation=%s', table_name, column_name, data_type, \
             is_nullable, column_default, collation_name) FROM information_schema.columns \
         WHERE table_schema = 'public' AND table_name <> 'schema_migrations' \
         UNION ALL SELECT indexdef FROM pg_indexes \
         WHERE schemaname = 'public' AND tablename <> 'schema_migrations' \
         UNION ALL SELECT format('%s: %s', c.relname, pg_get_constraintdef(k.oid)) \
         FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid \
         WHERE k.connamespace = 'public'::regnamespace AND c.relname <> 'schema_migrations'",
        &[],
    );
    lines.await?.iter().map(|line| line.try_get(0)).collect()
}
