//! The SQL that creates a table as it is described.

pub use super::render::quoted;
use crate::table::{Column, IndexPredicate, Table, Type, Unique};

/// A database with its own words for column types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite; tables are `STRICT`, so that it enforces their types.
    Sqlite,
    /// Postgres; text is compared by its bytes, whatever the database's locale.
    Postgres,
}

impl Dialect {
    /// Both, in the order their migrations are written in.
    pub const ALL: [Self; 2] = [Self::Sqlite, Self::Postgres];

    /// The type of a column, as a column definition spells it.
    #[must_use]
    pub const fn type_name(self, of: Type) -> &'static str {
        match (of, self) {
            (Type::Bool, Self::Postgres) => "BOOLEAN",
            (Type::Int, Self::Postgres) => "BIGINT",
            (Type::Text | Type::Json, Self::Postgres) => "TEXT COLLATE \"C\"",
            (Type::Bool | Type::Int, Self::Sqlite) => "INTEGER",
            (Type::Text | Type::Json, Self::Sqlite) => "TEXT",
        }
    }
}

/// The statements that create a table and its indexes. With `if_missing` they leave alone what exists.
#[must_use]
pub fn create(table: &Table, dialect: Dialect, if_missing: bool) -> String {
    let mut text = create_table(table, table.name, dialect, if_missing);
    for index in indexes(table) {
        text.push_str(&index.create(if_missing));
    }
    text
}

/// The statement that creates a table as described, without its indexes, under a name that may be another one.
#[must_use]
pub fn create_table(table: &Table, name: &str, dialect: Dialect, if_missing: bool) -> String {
    let definition = |column: &Column| {
        let key = if column.name == table.key() {
            " PRIMARY KEY"
        } else {
            ""
        };
        format!(
            "    {}{key}{}",
            column_definition(column, dialect),
            check(column, dialect)
        )
    };
    let columns: Vec<String> = table.columns.iter().map(definition).collect();
    let strict = match dialect {
        Dialect::Sqlite => " STRICT",
        Dialect::Postgres => "",
    };
    format!(
        "CREATE TABLE {}{} (\n{}\n){strict};\n",
        guard(if_missing),
        quoted(name),
        columns.join(",\n")
    )
}

/// The name, type and nullability of a column.
#[must_use]
pub fn column_definition(column: &Column, dialect: Dialect) -> String {
    let null = if column.nullable { "" } else { " NOT NULL" };
    let of = dialect.type_name(column.kind);
    format!("{} {of}{null}", quoted(column.name))
}

/// The constraint that makes an integer a boolean, where the database has no such type; empty elsewhere.
#[must_use]
pub fn check(column: &Column, dialect: Dialect) -> String {
    match (column.kind, dialect) {
        (Type::Bool, Dialect::Sqlite) => format!(" CHECK ({} IN (0, 1))", quoted(column.name)),
        _ => String::new(),
    }
}

/// An index as it is created in both databases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Its name, unique in the database.
    pub name: String,
    /// `CREATE [UNIQUE] INDEX`.
    create: &'static str,
    /// `ON ..`.
    definition: String,
}

impl Index {
    /// The statement that creates it.
    #[must_use]
    pub fn create(&self, if_missing: bool) -> String {
        let (create, name) = (self.create, quoted(&self.name));
        format!(
            "{create} {}{name} {};\n",
            guard(if_missing),
            self.definition
        )
    }
}

/// The indexes of a table: unique ones, declared ones, and one on the parent column if no other begins with it.
#[must_use]
pub fn indexes(table: &Table) -> Vec<Index> {
    let uniques = table
        .uniques
        .iter()
        .map(|unique| unique_index(table, unique));
    let mut indexes: Vec<Index> = uniques.collect();
    let mut column_lists: Vec<&[&'static str]> = table.indexes.to_vec();
    let begins_with = |parent| column_lists.iter().any(|list| list.first() == Some(parent));
    if let Some(parent) = table.parent.as_ref().filter(|parent| !begins_with(parent)) {
        column_lists.push(std::slice::from_ref(parent));
    }
    indexes.extend(column_lists.into_iter().map(|list| index(table, list)));
    indexes
}

fn index(table: &Table, columns: &[&'static str]) -> Index {
    // The key at the end makes the index give the order of a page.
    let listed = listed(columns.iter().copied().chain([table.key()]));
    Index {
        name: format!("{}_by_{}", table.name, columns.join("_")),
        create: "CREATE INDEX",
        definition: format!("ON {} ({listed})", quoted(table.name)),
    }
}

fn unique_index(table: &Table, unique: &Unique) -> Index {
    let columns = listed(unique.columns.iter().copied());
    let predicates: Vec<String> = unique.predicates.iter().copied().map(predicate).collect();
    let condition = if predicates.is_empty() {
        String::new()
    } else {
        format!(" WHERE {}", predicates.join(" AND "))
    };
    Index {
        name: format!("{}_{}", table.name, unique.name),
        create: "CREATE UNIQUE INDEX",
        definition: format!("ON {} ({columns}){condition}", quoted(table.name)),
    }
}

fn predicate(predicate: IndexPredicate) -> String {
    match predicate {
        IndexPredicate::IsNull(column) => format!("{} IS NULL", quoted(column)),
        IndexPredicate::Is(column, text) => format!("{} = {}", quoted(column), text_literal(text)),
        IndexPredicate::OneOf(column, texts) => {
            let texts: Vec<String> = texts.iter().map(|text| text_literal(text)).collect();
            format!("{} IN ({})", quoted(column), texts.join(", "))
        }
    }
}

/// A text as a literal of SQL.
#[must_use]
pub fn text_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

const fn guard(if_missing: bool) -> &'static str {
    if if_missing { "IF NOT EXISTS " } else { "" }
}

fn listed(columns: impl Iterator<Item = &'static str>) -> String {
    columns.map(quoted).collect::<Vec<_>>().join(", ")
}
