//! A server of the release before keeps running while a migration has already run: migrations expand the schema first
//! and contract it a release later.
//!
//! A contracting migration declares in its first lines what it removes, and the first release that does not use it:
//!
//! ```sql
//! -- unused since 0.2.0: entities.seats, legacy_entities
//! ```

use std::collections::BTreeMap;

use core_storage::sql::ddl::Dialect;
use core_storage::sql::migrations;
use rusqlite::Connection;

/// The beginning of a comment that declares a removal.
const UNUSED: &str = "-- unused since ";

/// The columns of each table, by name.
type Schema = BTreeMap<String, BTreeMap<String, Column>>;

#[derive(Clone, Debug, PartialEq)]
struct Column {
    kind: String,
    is_required: bool,
    has_default: bool,
}

/// Reads the columns of all tables.
fn schema(database: &Connection) -> Schema {
    let mut columns = database
        .prepare(
            "SELECT t.name, c.name, c.type, c.\"notnull\", c.dflt_value IS NOT NULL \
             FROM pragma_table_list t JOIN pragma_table_info(t.name) c \
             WHERE t.schema = 'main' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\'",
        )
        .unwrap();
    let mut rows = columns.query([]).unwrap();
    let mut schema = Schema::new();
    while let Some(row) = rows.next().unwrap() {
        let column = Column {
            kind: row.get(2).unwrap(),
            is_required: row.get(3).unwrap(),
            has_default: row.get(4).unwrap(),
        };
        let table = schema.entry(row.get(0).unwrap()).or_default();
        table.insert(row.get(1).unwrap(), column);
    }
    schema
}

/// Returns a release as numbers that compare.
fn release(text: &str) -> Vec<u64> {
    let numbers = text.split('.').map(str::parse);
    numbers.collect::<Result<_, _>>().expect("a release")
}

/// Returns the tables and columns that the migration may remove: those that no release from `current` on uses.
fn removable<'a>(text: &'a str, current: &str) -> Vec<&'a str> {
    let declared = text.lines().take_while(|line| line.starts_with("--"));
    let declared = declared.filter_map(|line| line.strip_prefix(UNUSED)?.split_once(": "));
    let declared = declared.filter(|(since, _)| release(since) < release(current));
    declared.flat_map(|(_, names)| names.split(", ")).collect()
}

/// Returns why a server that was built before the migration cannot use the schema after it.
fn incompatibilities(before: &Schema, after: &Schema, removable: &[&str]) -> Vec<String> {
    let mut problems = Vec::new();
    for (table, columns) in before {
        let Some(new_columns) = after.get(table) else {
            if !removable.contains(&table.as_str()) {
                problems.push(format!("{table} is removed or renamed"));
            }
            continue;
        };
        for (name, column) in columns {
            let id = format!("{table}.{name}");
            match new_columns.get(name) {
                None if removable.contains(&id.as_str()) => {}
                None => problems.push(format!("{id} is removed or renamed")),
                Some(new) if new.kind != column.kind => {
                    problems.push(format!("{id} changes its type"));
                }
                Some(new) if new.is_required && !column.is_required => {
                    problems.push(format!("{id} no longer accepts NULL"));
                }
                Some(_) => {}
            }
        }
        for (name, column) in new_columns {
            let is_new = !columns.contains_key(name);
            if is_new && column.is_required && !column.has_default {
                problems.push(format!(
                    "{table}.{name} is required and has no default: add it as a nullable column"
                ));
            }
        }
    }
    problems
}

/// Returns the incompatibilities of a migration on a database with one table.
fn incompatibilities_of(migration: &str) -> Vec<String> {
    let database = Connection::open_in_memory().unwrap();
    let table =
        "CREATE TABLE seats (id TEXT NOT NULL PRIMARY KEY, row INTEGER, hall TEXT NOT NULL)";
    database.execute_batch(table).unwrap();
    let before = schema(&database);
    database.execute_batch(migration).unwrap();
    let removable = removable(migration, "0.3.0");
    incompatibilities(&before, &schema(&database), &removable)
}

#[test]
fn a_server_of_the_release_before_survives_every_migration() {
    let database = Connection::open_in_memory().unwrap();
    for migration in migrations::pending(&[], Dialect::Sqlite).unwrap() {
        let before = schema(&database);
        database.execute_batch(migration.text).unwrap();
        let removable = removable(migration.text, env!("CARGO_PKG_VERSION"));
        let problems = incompatibilities(&before, &schema(&database), &removable);
        assert!(
            problems.is_empty(),
            "{} breaks servers that still run: {problems:?}. Expand the schema first; contract it a release later.",
            migration.name
        );
    }
}

#[test]
fn expansions_are_compatible() {
    for migration in [
        "CREATE TABLE halls (id TEXT NOT NULL)",
        "ALTER TABLE seats ADD COLUMN price INTEGER",
        "ALTER TABLE seats ADD COLUMN price INTEGER NOT NULL DEFAULT 0",
        "CREATE INDEX seats_by_row ON seats (row)",
    ] {
        assert_eq!(incompatibilities_of(migration), [""; 0], "{migration}");
    }
}

#[test]
fn changes_that_break_a_running_server_are_reported() {
    for (migration, problem) in [
        ("DROP TABLE seats", "seats is removed or renamed"),
        ("ALTER TABLE seats RENAME TO chairs", "seats is removed or renamed"),
        ("ALTER TABLE seats DROP COLUMN row", "seats.row is removed or renamed"),
        (
            "ALTER TABLE seats RENAME COLUMN row TO line",
            "seats.row is removed or renamed",
        ),
        (
            "CREATE TABLE n (id TEXT NOT NULL PRIMARY KEY, row INTEGER NOT NULL, hall TEXT NOT NULL);
             DROP TABLE seats; ALTER TABLE n RENAME TO seats",
            "seats.row no longer accepts NULL",
        ),
        (
            "CREATE TABLE n (id TEXT NOT NULL PRIMARY KEY, row TEXT, hall TEXT NOT NULL);
             DROP TABLE seats; ALTER TABLE n RENAME TO seats",
            "seats.row changes its type",
        ),
        (
            "CREATE TABLE n (id TEXT NOT NULL PRIMARY KEY, row INTEGER, hall TEXT NOT NULL, price INTEGER NOT NULL);
             DROP TABLE seats; ALTER TABLE n RENAME TO seats",
            "seats.price is required and has no default: add it as a nullable column",
        ),
    ] {
        assert_eq!(incompatibilities_of(migration), [problem], "{migration}");
    }
}

#[test]
fn a_column_is_removed_after_the_release_that_stopped_using_it() {
    let drop = "ALTER TABLE seats DROP COLUMN row";
    for since in ["0.1.0", "0.2.9"] {
        let migration = format!("-- unused since {since}: seats.row\n{drop}");
        assert_eq!(incompatibilities_of(&migration), [""; 0], "{since}");
    }
    for since in ["0.3.0", "0.10.0"] {
        let migration = format!("-- unused since {since}: seats.row\n{drop}");
        assert_eq!(incompatibilities_of(&migration).len(), 1, "{since}");
    }
}
