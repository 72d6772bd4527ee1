//! Plans a migration and writes its files.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use core_storage::Table;
use core_storage::sql::ddl::Dialect;
use rusqlite::Connection;

use crate::decisions::Decisions;
use crate::diff::{Change, diff};
use crate::error::WriteError;
use crate::files::{DIALECTS, migration_names};
use crate::render::{Texts, render};
use crate::schema::read_schema;

/// The changes, and the migrations that make them.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) changes: Vec<Change>,
    /// One migration, or one for tables and columns and one for indexes.
    pub(crate) migrations: Vec<Texts>,
}

impl Texts {
    fn of(&self, dialect: Dialect) -> &str {
        match dialect {
            Dialect::Sqlite => &self.sqlite,
            Dialect::Postgres => &self.postgres,
        }
    }
}

/// Plans the migration from the schema of the database to the described tables, and runs it on the database. Returns
/// `None` if they already agree.
///
/// # Errors
/// [`WriteError::Undecided`] if a value or a decision is missing. [`WriteError::Sql`] if the text fails.
/// [`WriteError::Incomplete`] if it does not lead to the described tables.
pub(crate) fn plan(
    database: &Connection,
    described: &[&'static Table],
    mut decisions: Decisions,
) -> Result<Option<Plan>, WriteError> {
    let reading = || WriteError::sql("the schema");
    let schema = read_schema(database).map_err(reading())?;
    let changes = diff(described, &schema, &mut decisions);
    decisions.finish()?;
    if changes.is_empty() {
        return Ok(None);
    }
    let plan = Plan {
        migrations: render(&changes),
        changes,
    };
    for migration in &plan.migrations {
        run(database, "the migration", &migration.sqlite)?;
    }
    let schema = read_schema(database).map_err(reading())?;
    let left = diff(described, &schema, &mut Decisions::default());
    if left.is_empty() {
        return Ok(Some(plan));
    }
    let left: Vec<String> = left.iter().map(ToString::to_string).collect();
    Err(WriteError::Incomplete(left.join(", ")))
}

/// Creates an empty database and runs all migrations of the folder on it.
///
/// # Errors
/// [`WriteError::Files`] if the files are invalid or incomplete. [`WriteError::Sql`] if a migration fails.
pub(crate) fn migrate(folder: &Path) -> Result<Connection, WriteError> {
    let opening = WriteError::sql("a database in memory");
    let database = Connection::open_in_memory().map_err(opening)?;
    for name in migration_names(folder).map_err(WriteError::Files)? {
        let path = file(folder, DIALECTS[0], &name);
        let text = fs::read_to_string(&path).map_err(WriteError::io(&path))?;
        run(&database, &name, &text)?;
    }
    Ok(database)
}

fn run(database: &Connection, what: &str, text: &str) -> Result<(), WriteError> {
    database.execute_batch(text).map_err(WriteError::sql(what))
}

/// Writes the plan as the next migrations, with a file for each dialect. Returns the paths.
///
/// # Errors
/// [`WriteError::Files`] if the existing files are invalid or incomplete. [`WriteError::Io`] if a file cannot be
/// written.
pub(crate) fn write(folder: &Path, name: &str, plan: &Plan) -> Result<Vec<PathBuf>, WriteError> {
    let first = next_number(folder)?;
    let mut written = Vec::new();
    for (number, migration) in (first..).zip(&plan.migrations) {
        let suffix = if number == first { "" } else { "_indexes" };
        let name = format!("{number:04}_{name}{suffix}");
        for (dialect, folder_name) in Dialect::ALL.into_iter().zip(DIALECTS) {
            let path = file(folder, folder_name, &name);
            let outcome = create(&path, migration.of(dialect));
            if let Err(error) = outcome {
                // A migration without a file for every dialect would break the build.
                for path in &written {
                    let _ = fs::remove_file(path);
                }
                return Err(WriteError::io(&path)(error));
            }
            written.push(path);
        }
    }
    Ok(written)
}

fn create(path: &Path, text: &str) -> std::io::Result<()> {
    fs::File::create_new(path)?.write_all(text.as_bytes())
}

fn next_number(folder: &Path) -> Result<u32, WriteError> {
    let names = migration_names(folder).map_err(WriteError::Files)?;
    let last = names.last().and_then(|last| last[..4].parse::<u32>().ok());
    Ok(last.unwrap_or(0) + 1)
}

fn file(folder: &Path, dialect: &str, name: &str) -> PathBuf {
    folder.join(dialect).join(format!("{name}.sql"))
}
