//! The SQL that makes a table as it is described.

use std::fmt::Write;

use super::render::quoted;
use crate::table::{Only, Table, Type, Unique};

/// A database with its own words for column types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite; tables are `STRICT`, so that it keeps to its types.
    Sqlite,
    /// Postgres; text is compared by its bytes, whatever the database's locale.
    Postgres,
}

/// The statements that make a table and its indexes. With `if_missing` they leave alone what exists.
#[must_use]
pub fn create(table: &Table, dialect: Dialect, if_missing: bool) -> String {
    let guard = if if_missing { "IF NOT EXISTS " } else { "" };
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|column| {
            let name = quoted(column.name);
            let kind = type_name(column.kind, dialect);
            let mut line = format!("    {name} {kind}");
            if !column.nullable {
                line.push_str(" NOT NULL");
            }
            if column.name == table.key() {
                line.push_str(" PRIMARY KEY");
            }
            if column.kind == Type::Bool && dialect == Dialect::Sqlite {
                let _ = write!(line, " CHECK ({name} IN (0, 1))");
            }
            line
        })
        .collect();
    let strict = match dialect {
        Dialect::Sqlite => " STRICT",
        Dialect::Postgres => "",
    };
    let name = quoted(table.name);
    let columns = columns.join(",\n");
    let mut text = format!("CREATE TABLE {guard}{name} (\n{columns}\n){strict};\n");
    for unique in table.uniques {
        text.push_str(&unique_index(table, unique, guard));
    }
    for columns in indexes(table) {
        let index = quoted(&format!("{}_by_{}", table.name, columns.join("_")));
        // The key at the end makes the index give the order of a page.
        let columns = listed(columns.iter().copied().chain([table.key()]));
        let _ = writeln!(text, "CREATE INDEX {guard}{index} ON {name} ({columns});");
    }
    text
}

fn type_name(kind: Type, dialect: Dialect) -> &'static str {
    match (kind, dialect) {
        (Type::Bool, Dialect::Postgres) => "BOOLEAN",
        (Type::Int, Dialect::Postgres) => "BIGINT",
        (Type::Text | Type::Json, Dialect::Postgres) => "TEXT COLLATE \"C\"",
        (Type::Bool | Type::Int, Dialect::Sqlite) => "INTEGER",
        (Type::Text | Type::Json, Dialect::Sqlite) => "TEXT",
    }
}

/// The declared indexes, and one for the parent column if none begins with it.
fn indexes(table: &Table) -> Vec<Vec<&'static str>> {
    let mut indexes: Vec<Vec<&'static str>> = table.indexes.iter().map(|i| i.to_vec()).collect();
    if let Some(parent) = table.parent {
        let has = indexes.iter().any(|index| index.first() == Some(&parent));
        if !has {
            indexes.push(vec![parent]);
        }
    }
    indexes
}

fn unique_index(table: &Table, unique: &Unique, guard: &str) -> String {
    let index = quoted(&format!("{}_{}", table.name, unique.name));
    let name = quoted(table.name);
    let columns = listed(unique.columns.iter().copied());
    let conditions: Vec<String> = unique.only.iter().map(|only| condition(*only)).collect();
    let only = if conditions.is_empty() {
        String::new()
    } else {
        format!(" WHERE {}", conditions.join(" AND "))
    };
    format!("CREATE UNIQUE INDEX {guard}{index} ON {name} ({columns}){only};\n")
}

fn condition(only: Only) -> String {
    let literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
    match only {
        Only::IsNull(column) => format!("{} IS NULL", quoted(column)),
        Only::Is(column, text) => format!("{} = {}", quoted(column), literal(text)),
        Only::OneOf(column, texts) => {
            let texts: Vec<String> = texts.iter().map(|text| literal(text)).collect();
            format!("{} IN ({})", quoted(column), texts.join(", "))
        }
    }
}

fn listed(columns: impl Iterator<Item = &'static str>) -> String {
    columns.map(quoted).collect::<Vec<_>>().join(", ")
}
