//! The difference between the described tables and the schema of a database.

use std::collections::BTreeMap;
use std::fmt;

use core_storage::sql::ddl::{Dialect, Index, ProtectionTrigger, guards_of, indexes};
use core_storage::{Column, Table, Type, Value};

use crate::decisions::Decisions;
use crate::schema::{ExistingColumn, ExistingTable, Schema, normalize_sql};

/// The change of one table.
#[derive(Debug)]
pub(crate) enum Change {
    Drop(String),
    Alter(Alteration),
    Create(&'static Table),
}

/// The change of a table that exists and is described.
#[derive(Debug)]
pub(crate) struct Alteration {
    pub(crate) table: &'static Table,
    /// Indexes that are not described, or that are described differently.
    pub(crate) dropped_indexes: Vec<String>,
    pub(crate) dropped_columns: Vec<String>,
    pub(crate) added_columns: Vec<AddedColumn>,
    pub(crate) changed_columns: Vec<ChangedColumn>,
    pub(crate) created_indexes: Vec<Index>,
    /// The change of the triggers that protect append-only rows.
    pub(crate) guards: Guards,
    /// Whether the SQLite table is not `STRICT` or has a column with a default.
    pub(crate) sqlite_differs: bool,
}

/// The change of the triggers that protect append-only rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guards {
    /// The triggers stay as they are.
    Stay,
    /// The triggers are created, and replace triggers with the same names.
    Create,
    /// The triggers are dropped.
    Drop,
}

/// A column that is described and does not exist.
#[derive(Debug)]
pub(crate) struct AddedColumn {
    pub(crate) column: &'static Column,
    /// The value of existing rows; `None` if the column is nullable.
    pub(crate) default: Option<Value>,
}

/// A column that is described with another type or nullability.
#[derive(Debug)]
pub(crate) struct ChangedColumn {
    pub(crate) column: &'static Column,
    pub(crate) from: Type,
    pub(crate) was_nullable: bool,
    /// The value that replaces NULLs if they are no longer allowed.
    pub(crate) default: Option<Value>,
}

/// Returns the changes from the schema to the descriptions: dropped tables, then altered ones, then new ones.
pub(crate) fn diff(
    described: &[&'static Table],
    schema: &Schema,
    decisions: &mut Decisions,
) -> Vec<Change> {
    let is_described = |name: &String| described.iter().any(|table| table.name == name);
    let dropped = schema.keys().filter(|name| !is_described(name));
    let mut changes: Vec<Change> = dropped.cloned().map(Change::Drop).collect();
    let mut created = Vec::new();
    for table in described {
        match schema.get(table.name) {
            None => created.push(Change::Create(table)),
            Some(existing) => {
                changes.extend(alteration(table, existing, decisions).map(Change::Alter));
            }
        }
    }
    changes.extend(created);
    changes
}

fn alteration(
    table: &'static Table,
    existing: &ExistingTable,
    decisions: &mut Decisions,
) -> Option<Alteration> {
    let mut alteration = Alteration {
        table,
        dropped_indexes: Vec::new(),
        dropped_columns: Vec::new(),
        added_columns: Vec::new(),
        changed_columns: Vec::new(),
        created_indexes: Vec::new(),
        guards: compare_guards(table, &existing.triggers),
        sqlite_differs: !existing.strict || existing.columns.iter().any(|c| c.has_default),
    };
    compare_key(table, existing, decisions);
    compare_columns(&mut alteration, existing, decisions);
    compare_indexes(&mut alteration, &existing.indexes);
    if alteration.is_empty() {
        return None;
    }
    let guards = guards_of(table, Dialect::Sqlite);
    let is_guard = |name: &String| guards.iter().any(|guard| guard.name == *name);
    if !existing.triggers.keys().all(is_guard) {
        decisions.refuse(format!(
            "{} has other triggers, which this command does not support: write its migration by hand",
            table.name
        ));
    }
    Some(alteration)
}

fn compare_key(table: &Table, existing: &ExistingTable, decisions: &mut Decisions) {
    let keys = existing.columns.iter().filter(|column| column.is_key);
    let keys: Vec<&str> = keys.map(|column| column.name.as_str()).collect();
    if keys != [table.key()] {
        decisions.refuse(format!(
            "{}: the key changed from {} to {}; describe a new table instead",
            table.name,
            keys.join(", "),
            table.key()
        ));
    }
}

fn compare_columns(
    alteration: &mut Alteration,
    existing: &ExistingTable,
    decisions: &mut Decisions,
) {
    let table = alteration.table;
    let is_described = |column: &&ExistingColumn| table.column_index(&column.name).is_some();
    let dropped = existing.columns.iter().filter(|c| !is_described(c));
    alteration.dropped_columns = dropped.map(|column| column.name.clone()).collect();
    for column in table.columns {
        let Some(old) = existing.column(column.name) else {
            let default = (!column.nullable).then(|| decisions.take_default(table, column));
            alteration
                .added_columns
                .push(AddedColumn { column, default });
            continue;
        };
        let Some(from) = old.kind else {
            decisions.refuse(format!(
                "{}.{} has a type that cannot be converted: write its migration by hand",
                table.name, column.name
            ));
            continue;
        };
        if from == stored_type(column.kind) && old.nullable == column.nullable {
            continue;
        }
        let forbids_null = old.nullable && !column.nullable;
        alteration.changed_columns.push(ChangedColumn {
            column,
            from,
            was_nullable: old.nullable,
            default: forbids_null.then(|| decisions.take_default(table, column)),
        });
    }
}

fn compare_indexes(alteration: &mut Alteration, existing: &BTreeMap<String, String>) {
    let described = indexes(alteration.table);
    let as_described =
        |name: &str, sql: &str| described.iter().any(|i| i.name == name && same(i, sql));
    let differing = existing
        .iter()
        .filter(|(name, sql)| !as_described(name, sql));
    alteration.dropped_indexes = differing.map(|(name, _)| name.clone()).collect();
    let exists = |index: &Index| {
        existing
            .get(&index.name)
            .is_some_and(|sql| same(index, sql))
    };
    let missing = described.iter().filter(|index| !exists(index));
    alteration.created_indexes = missing.cloned().collect();
}

fn compare_guards(table: &Table, existing: &BTreeMap<String, String>) -> Guards {
    let of_name = guards_of(table, Dialect::Sqlite);
    let exists = |guard: &ProtectionTrigger| {
        existing.get(&guard.name) == Some(&normalize_sql(&guard.create))
    };
    match (table.append_only, of_name.iter().all(exists)) {
        (true, true) => Guards::Stay,
        (true, false) => Guards::Create,
        (false, _)
            if of_name
                .iter()
                .any(|guard| existing.contains_key(&guard.name)) =>
        {
            Guards::Drop
        }
        (false, _) => Guards::Stay,
    }
}

fn same(index: &Index, sql: &str) -> bool {
    normalize_sql(&index.create(false)) == sql
}

/// Returns the type in a SQLite database, where UUIDs and JSON are stored as text.
pub(crate) const fn stored_type(kind: Type) -> Type {
    match kind {
        Type::Uuid | Type::Json => Type::Text,
        other => other,
    }
}

impl Alteration {
    fn is_empty(&self) -> bool {
        self.dropped_indexes.is_empty()
            && self.dropped_columns.is_empty()
            && self.added_columns.is_empty()
            && self.changed_columns.is_empty()
            && self.created_indexes.is_empty()
            && self.guards == Guards::Stay
            && !self.sqlite_differs
    }
}

impl Change {
    /// Returns descriptions of the data that the change deletes.
    pub(crate) fn deleted_data(&self) -> Vec<String> {
        match self {
            Self::Drop(table) => vec![format!("the rows of {table}")],
            Self::Alter(alteration) => {
                let table = alteration.table.name;
                let column = |column: &String| format!("the values of {table}.{column}");
                alteration.dropped_columns.iter().map(column).collect()
            }
            Self::Create(_) => Vec::new(),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Drop(table) => write!(f, "{table}: dropped"),
            Self::Create(table) => write!(f, "{}: created", table.name),
            Self::Alter(alteration) => alteration.fmt(f),
        }
    }
}

impl fmt::Display for Alteration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |names: &[String]| names.join(", ");
        let added = self.added_columns.iter().map(|c| c.column.name.to_owned());
        let changed = self
            .changed_columns
            .iter()
            .map(|c| c.column.name.to_owned());
        let created = self.created_indexes.iter().map(|index| index.name.clone());
        let parts = [
            ("columns added", names(&added.collect::<Vec<_>>())),
            ("columns changed", names(&changed.collect::<Vec<_>>())),
            ("columns dropped", names(&self.dropped_columns)),
            ("indexes dropped", names(&self.dropped_indexes)),
            ("indexes created", names(&created.collect::<Vec<_>>())),
        ];
        write!(f, "{}: altered", self.table.name)?;
        for (what, names) in parts.iter().filter(|(_, names)| !names.is_empty()) {
            write!(f, "; {what}: {names}")?;
        }
        match self.guards {
            Guards::Stay => {}
            Guards::Create => f.write_str("; becomes append-only")?,
            Guards::Drop => f.write_str("; is no longer append-only")?,
        }
        if self.sqlite_differs {
            f.write_str("; rebuilt in SQLite, because it is not STRICT or has a column default")?;
        }
        Ok(())
    }
}
