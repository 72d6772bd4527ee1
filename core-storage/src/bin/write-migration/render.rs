//! Renders changes as SQL.

use core_storage::sql::ddl::{
    Dialect, check, column_definition, create, create_table, guards, guards_of, indexes,
    quote_ident,
};
use core_storage::sql::migrations::Release;
use core_storage::{Column, Type};

use crate::decisions::literal;
use crate::diff::{AddedColumn, Alteration, Change, ChangedColumn, Guards, stored_type};

/// The text of a migration for each dialect.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Texts {
    pub(crate) sqlite: String,
    pub(crate) postgres: String,
}

/// Renders the migrations for the changes: one for tables and columns, then one for the indexes of tables that exist. On
/// Postgres the second one builds and drops indexes outside a transaction, so that servers go on writing. On SQLite the
/// first one also has the indexes, because some changes of columns need them there.
pub(crate) fn render(changes: &[Change]) -> Vec<Texts> {
    let sqlite = changes_text(changes, Dialect::Sqlite);
    let postgres = changes_text(changes, Dialect::Postgres);
    let indexes: String = changes.iter().map(index_statements).collect();
    let release = format!("-- release {}\n", Release::current());
    let text = |statements: &str| format!("{release}\n{statements}");
    let outside = format!("{release}-- outside a transaction\n\n{indexes}");
    match (postgres.is_empty(), indexes.is_empty()) {
        (_, true) => vec![Texts {
            sqlite: text(&sqlite),
            postgres: text(&postgres),
        }],
        (true, false) => vec![Texts {
            sqlite: text(&sqlite),
            postgres: outside,
        }],
        (false, false) => vec![
            Texts {
                sqlite: text(&sqlite),
                postgres: text(&postgres),
            },
            Texts {
                sqlite: release,
                postgres: outside,
            },
        ],
    }
}

/// Returns the statements of the changes in order, separated by empty lines.
fn changes_text(changes: &[Change], dialect: Dialect) -> String {
    let texts = changes.iter().map(|change| render_change(change, dialect));
    let texts: Vec<String> = texts.filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

/// Returns the statements that change the indexes of a table on Postgres. New indexes are built before old ones are dropped,
/// so that no list is without an index. Only an index whose name is used again is dropped first.
fn index_statements(change: &Change) -> String {
    let Change::Alter(alteration) = change else {
        return String::new();
    };
    let created = &alteration.created_indexes;
    let is_replaced = |name: &&String| created.iter().any(|index| index.name == **name);
    let (replaced, removed): (Vec<_>, Vec<_>) =
        alteration.dropped_indexes.iter().partition(is_replaced);
    let drop = |name: &String| {
        // The index may have been dropped with its column.
        let name = quote_ident(name);
        format!("DROP INDEX CONCURRENTLY IF EXISTS {name};\n")
    };
    let created = created.iter().map(|index| {
        let create = index.create(true);
        create.replacen(" INDEX ", " INDEX CONCURRENTLY ", 1)
    });
    let before = replaced.into_iter().map(drop);
    let after = removed.into_iter().map(drop);
    before.chain(created).chain(after).collect()
}

fn render_change(change: &Change, dialect: Dialect) -> String {
    match change {
        Change::Drop(table) => format!("DROP TABLE {};\n", quote_ident(table)),
        Change::Create(table) => create(table, dialect, false),
        Change::Alter(alteration) if dialect == Dialect::Sqlite && alteration.needs_rebuild() => {
            rebuild(alteration)
        }
        Change::Alter(alteration) => alter(alteration, dialect),
    }
}

/// Renders `ALTER TABLE` statements: for all changes in Postgres, and in SQLite for those that need no rebuild, see
/// [`Alteration::needs_rebuild`].
fn alter(alteration: &Alteration, dialect: Dialect) -> String {
    let table = quote_ident(alteration.table.name);
    let mut text = String::new();
    if dialect == Dialect::Sqlite {
        for index in &alteration.dropped_indexes {
            text.push_str(&format!("DROP INDEX {};\n", quote_ident(index)));
        }
    }
    for column in &alteration.dropped_columns {
        text.push_str(&format!(
            "ALTER TABLE {table} DROP COLUMN {};\n",
            quote_ident(column)
        ));
    }
    for added in &alteration.added_columns {
        text.push_str(&add_column(&table, added, dialect));
    }
    for changed in &alteration.changed_columns {
        text.push_str(&change_column(&table, changed));
    }
    if dialect == Dialect::Sqlite {
        let created = alteration.created_indexes.iter();
        text.extend(created.map(|index| index.create(false)));
    }
    let table = alteration.table;
    let guards = guards_of(table, dialect);
    // The triggers would refuse an update of the rows.
    let updates = alteration
        .changed_columns
        .iter()
        .any(|c| c.default.is_some());
    let lifted = table.append_only && updates;
    if lifted || alteration.guards != Guards::Stay {
        let drop = guards.iter().map(|guard| guard.drop.as_str());
        text.insert_str(0, &drop.collect::<String>());
    }
    if lifted || alteration.guards == Guards::Create {
        text.extend(guards.into_iter().map(|guard| guard.create));
    }
    text
}

fn add_column(table: &str, added: &AddedColumn, dialect: Dialect) -> String {
    let definition = column_definition(added.column, dialect);
    let check = check(added.column, dialect);
    let Some(default) = &added.default else {
        return format!("ALTER TABLE {table} ADD COLUMN {definition}{check};\n");
    };
    let (name, default) = (quote_ident(added.column.name), literal(default, dialect));
    format!(
        "ALTER TABLE {table} ADD COLUMN {definition}{check} DEFAULT {default};\n\
         ALTER TABLE {table} ALTER COLUMN {name} DROP DEFAULT;\n"
    )
}

/// Renders a change of the type and nullability of a column in Postgres.
fn change_column(table: &str, changed: &ChangedColumn) -> String {
    let column = changed.column;
    let name = quote_ident(column.name);
    let mut text = String::new();
    if changed.changes_type() {
        let of = Dialect::Postgres.type_name(column.kind);
        let value = convert(changed, Dialect::Postgres);
        text.push_str(&format!(
            "ALTER TABLE {table} ALTER COLUMN {name} TYPE {of} USING {value};\n"
        ));
    }
    if let Some(default) = &changed.default {
        let default = literal(default, Dialect::Postgres);
        text.push_str(&format!(
            "UPDATE {table} SET {name} = {default} WHERE {name} IS NULL;\n"
        ));
    }
    if changed.was_nullable != column.nullable {
        let action = if column.nullable { "DROP" } else { "SET" };
        text.push_str(&format!(
            "ALTER TABLE {table} ALTER COLUMN {name} {action} NOT NULL;\n"
        ));
    }
    text
}

/// Replaces a table that SQLite cannot alter by a new table with the same rows. Follows the procedure of
/// <https://sqlite.org/lang_altertable.html#otheralter>, without the steps for foreign keys and views, which do not
/// exist here. It runs in the transaction of the migrations.
fn rebuild(alteration: &Alteration) -> String {
    let table = alteration.table;
    let new_name = format!("new_{}", table.name);
    let (new, old) = (quote_ident(&new_name), quote_ident(table.name));
    let names: Vec<String> = table.columns.iter().map(|c| quote_ident(c.name)).collect();
    let values: Vec<String> = table
        .columns
        .iter()
        .map(|column| rebuilt_value(alteration, column))
        .collect();
    let mut text = create_table(table, &new_name, Dialect::Sqlite, false);
    text.push_str(&format!(
        "INSERT INTO {new} ({})\n    SELECT {}\n    FROM {old};\nDROP TABLE {old};\nALTER TABLE {new} RENAME TO {old};\n",
        names.join(", "),
        values.join(", ")
    ));
    for index in indexes(table) {
        text.push_str(&index.create(false));
    }
    let guards = guards(table, Dialect::Sqlite).into_iter();
    text.extend(guards.map(|guard| guard.create));
    text
}

/// Returns the expression for the value of an existing row in a column of the new table.
fn rebuilt_value(alteration: &Alteration, column: &Column) -> String {
    let mut added = alteration.added_columns.iter();
    if let Some(added) = added.find(|added| added.column == column) {
        let default = added.default.as_ref();
        return default.map_or("NULL".to_owned(), |value| literal(value, Dialect::Sqlite));
    }
    let mut changed = alteration.changed_columns.iter();
    let Some(changed) = changed.find(|changed| changed.column == column) else {
        return quote_ident(column.name);
    };
    let value = convert(changed, Dialect::Sqlite);
    match &changed.default {
        Some(default) => format!("COALESCE({value}, {})", literal(default, Dialect::Sqlite)),
        None => value,
    }
}

/// Returns the expression that converts a changed column to its new type. NULL stays NULL. Text that is not a value of
/// the new type makes the migration fail. In SQLite it fails because a `STRICT` column rejects the value.
fn convert(changed: &ChangedColumn, dialect: Dialect) -> String {
    let name = quote_ident(changed.column.name);
    let to = stored_type(changed.column.kind);
    match (changed.from, to, dialect) {
        (Type::Int, Type::Bool, _) => format!("{name} <> 0"),
        (Type::Int, Type::Text, _) => format!("CAST({name} AS TEXT)"),
        (Type::Bool, Type::Int, Dialect::Postgres) => {
            format!("CAST(CAST({name} AS INTEGER) AS BIGINT)")
        }
        (Type::Bool, Type::Text, Dialect::Sqlite) => {
            format!("CASE {name} WHEN 0 THEN 'false' WHEN 1 THEN 'true' END")
        }
        (Type::Text, Type::Bool, Dialect::Sqlite) => {
            format!("CASE {name} WHEN 'false' THEN 0 WHEN 'true' THEN 1 ELSE {name} END")
        }
        (Type::Bool, Type::Text, Dialect::Postgres) => format!("CAST({name} AS TEXT)"),
        (Type::Text, Type::Bool, Dialect::Postgres) => format!("CAST({name} AS BOOLEAN)"),
        (Type::Text, Type::Int, Dialect::Postgres) => format!("CAST({name} AS BIGINT)"),
        _ => name,
    }
}

impl ChangedColumn {
    fn changes_type(&self) -> bool {
        self.from != stored_type(self.column.kind)
    }
}

impl Alteration {
    /// Returns whether the change exceeds SQLite's `ALTER TABLE`, which cannot change a column and keeps the default of
    /// an added one.
    fn needs_rebuild(&self) -> bool {
        self.sqlite_differs
            || !self.changed_columns.is_empty()
            || self
                .added_columns
                .iter()
                .any(|added| added.default.is_some())
    }
}
