//! The schema of a SQLite database, limited to the properties that table descriptions have.

use std::collections::BTreeMap;

use core_storage::Type;
use rusqlite::{Connection, Row};

/// The tables of a database by name.
pub(crate) type Schema = BTreeMap<String, ExistingTable>;

/// A table in the database.
#[derive(Debug)]
pub(crate) struct ExistingTable {
    pub(crate) columns: Vec<ExistingColumn>,
    /// The statements that create its indexes, by name.
    pub(crate) indexes: BTreeMap<String, String>,
    pub(crate) strict: bool,
    /// The statements that create its triggers, by name.
    pub(crate) triggers: BTreeMap<String, String>,
}

/// A column in the database.
#[derive(Debug)]
pub(crate) struct ExistingColumn {
    pub(crate) name: String,
    /// The type of the column. `Uuid` and `Json` are reported as `Text`; `None` is a type that no description has.
    pub(crate) kind: Option<Type>,
    pub(crate) nullable: bool,
    pub(crate) is_key: bool,
    pub(crate) has_default: bool,
}

impl ExistingTable {
    /// Returns the column with this name.
    pub(crate) fn column(&self, name: &str) -> Option<&ExistingColumn> {
        self.columns.iter().find(|column| column.name == name)
    }
}

/// Reads the schema of the database.
///
/// # Errors
/// The error of the driver if a query fails.
pub(crate) fn read_schema(database: &Connection) -> Result<Schema, rusqlite::Error> {
    let mut statement = database.prepare(
        "SELECT s.name, s.sql, l.strict \
         FROM sqlite_schema s JOIN pragma_table_list l ON l.schema = 'main' AND l.name = s.name \
         WHERE s.type = 'table' AND s.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )?;
    let table = |row: &Row<'_>| {
        let (name, sql): (String, String) = (row.get(0)?, row.get(1)?);
        let table = ExistingTable {
            columns: read_columns(database, &name, &sql)?,
            indexes: read_statements(database, "index", &name)?,
            triggers: read_statements(database, "trigger", &name)?,
            strict: row.get(2)?,
        };
        Ok((name, table))
    };
    statement.query_map([], table)?.collect()
}

fn read_columns(
    database: &Connection,
    table: &str,
    sql: &str,
) -> Result<Vec<ExistingColumn>, rusqlite::Error> {
    let mut statement = database.prepare(
        "SELECT name, type, \"notnull\", pk > 0, dflt_value IS NOT NULL FROM pragma_table_xinfo($1)",
    )?;
    let checks = without_spaces(sql);
    let column = |row: &Row<'_>| {
        let (name, declared): (String, String) = (row.get(0)?, row.get(1)?);
        let check = without_spaces(&format!("CHECK (\"{name}\" IN (0, 1))"));
        let kind = match (declared.as_str(), checks.contains(&check)) {
            ("INTEGER", true) => Some(Type::Bool),
            ("INTEGER", false) => Some(Type::Int),
            ("TEXT", _) => Some(Type::Text),
            _ => None,
        };
        let not_null: bool = row.get(2)?;
        Ok(ExistingColumn {
            name,
            kind,
            nullable: !not_null,
            is_key: row.get(3)?,
            has_default: row.get(4)?,
        })
    };
    statement.query_map([table], column)?.collect()
}

fn read_statements(
    database: &Connection,
    kind: &str,
    table: &str,
) -> Result<BTreeMap<String, String>, rusqlite::Error> {
    // Indexes without a statement belong to the key.
    let mut statement = database.prepare(
        "SELECT name, sql FROM sqlite_schema WHERE type = $1 AND tbl_name = $2 AND sql IS NOT NULL",
    )?;
    let named = |row: &Row<'_>| {
        let sql: String = row.get(1)?;
        Ok((row.get(0)?, normalize_sql(&sql)))
    };
    statement.query_map([kind, table], named)?.collect()
}

/// Normalizes a statement for a comparison: single spaces, no semicolon.
pub(crate) fn normalize_sql(sql: &str) -> String {
    let words: Vec<&str> = sql.split_whitespace().collect();
    words.join(" ").trim_end_matches(';').to_owned()
}

fn without_spaces(sql: &str) -> String {
    sql.split_whitespace().collect()
}
