//! The schema of a SQLite database, as far as descriptions of tables say anything about it.

use std::collections::BTreeMap;

use core_storage::Type;
use sqlx::SqliteConnection;

/// The tables of a database by name.
pub(crate) type Schema = BTreeMap<String, ExistingTable>;

/// A table.
#[derive(Debug)]
pub(crate) struct ExistingTable {
    pub(crate) columns: Vec<ExistingColumn>,
    /// The statements that create its indexes, by name.
    pub(crate) indexes: BTreeMap<String, String>,
    pub(crate) strict: bool,
    /// Whether a trigger is attached to it; none is ever described.
    pub(crate) has_triggers: bool,
}

/// A column.
#[derive(Debug)]
pub(crate) struct ExistingColumn {
    pub(crate) name: String,
    /// Its type; `Json` counts as `Text`, and `None` is one that no description has.
    pub(crate) kind: Option<Type>,
    pub(crate) nullable: bool,
    pub(crate) is_key: bool,
    pub(crate) has_default: bool,
}

impl ExistingTable {
    /// The column of this name.
    pub(crate) fn column(&self, name: &str) -> Option<&ExistingColumn> {
        self.columns.iter().find(|column| column.name == name)
    }
}

/// Reads the schema of the database.
///
/// # Errors
/// The driver's.
pub(crate) async fn read_schema(database: &mut SqliteConnection) -> Result<Schema, sqlx::Error> {
    let tables: Vec<(String, String, bool, bool)> = sqlx::query_as(
        "SELECT s.name, s.sql, l.strict, \
         EXISTS (SELECT 1 FROM sqlite_schema t WHERE t.type = 'trigger' AND t.tbl_name = s.name) \
         FROM sqlite_schema s JOIN pragma_table_list l ON l.schema = 'main' AND l.name = s.name \
         WHERE s.type = 'table' AND s.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
    )
    .fetch_all(&mut *database)
    .await?;
    let mut schema = Schema::new();
    for (name, sql, strict, has_triggers) in tables {
        let table = ExistingTable {
            columns: read_columns(database, &name, &sql).await?,
            indexes: read_indexes(database, &name).await?,
            strict,
            has_triggers,
        };
        schema.insert(name, table);
    }
    Ok(schema)
}

async fn read_columns(
    database: &mut SqliteConnection,
    table: &str,
    sql: &str,
) -> Result<Vec<ExistingColumn>, sqlx::Error> {
    type Row = (String, String, bool, bool, bool);
    let rows: Vec<Row> = sqlx::query_as(
        "SELECT name, type, \"notnull\", pk > 0, dflt_value IS NOT NULL FROM pragma_table_xinfo($1)",
    )
    .bind(table)
    .fetch_all(database)
    .await?;
    let checks = without_spaces(sql);
    let column = |(name, declared, not_null, is_key, has_default): Row| {
        let check = without_spaces(&format!("CHECK (\"{name}\" IN (0, 1))"));
        let kind = match (declared.as_str(), checks.contains(&check)) {
            ("INTEGER", true) => Some(Type::Bool),
            ("INTEGER", false) => Some(Type::Int),
            ("TEXT", _) => Some(Type::Text),
            _ => None,
        };
        ExistingColumn {
            name,
            kind,
            nullable: !not_null,
            is_key,
            has_default,
        }
    };
    Ok(rows.into_iter().map(column).collect())
}

async fn read_indexes(
    database: &mut SqliteConnection,
    table: &str,
) -> Result<BTreeMap<String, String>, sqlx::Error> {
    // Those without a statement belong to the key.
    let rows: Vec<(String, String)> = sqlx::query_as(
        "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND tbl_name = $1 AND sql IS NOT NULL",
    )
    .bind(table)
    .fetch_all(database)
    .await?;
    let normalized = |(name, sql): (String, String)| (name, normalized(&sql));
    Ok(rows.into_iter().map(normalized).collect())
}

/// A statement with single spaces and without the semicolon, to be compared.
pub(crate) fn normalized(sql: &str) -> String {
    let words: Vec<&str> = sql.split_whitespace().collect();
    words.join(" ").trim_end_matches(';').to_owned()
}

fn without_spaces(sql: &str) -> String {
    sql.split_whitespace().collect()
}
