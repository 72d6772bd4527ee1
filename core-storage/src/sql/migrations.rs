//! The numbered migrations that bring a database to the described schema. There are no down migrations, and a released
//! file never changes.

use core_domain::kernel::{StoreError, hex};
use sha2::{Digest, Sha256};

use super::dialect::Dialect;

/// A migration with its text for each dialect.
struct Migration {
    name: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

impl Migration {
    const fn text(&self, dialect: Dialect) -> &'static str {
        match dialect {
            Dialect::Sqlite => self.sqlite,
            Dialect::Postgres => self.postgres,
        }
    }
}

/// All migrations in the order in which they run: the files of `migrations/`, listed by the build script.
const ALL: &[Migration] = include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

/// Creates the table of the migrations that have run.
pub const MIGRATIONS_TABLE: &str = "CREATE TABLE IF NOT EXISTS \"schema_migrations\" \
     (\"name\" TEXT NOT NULL PRIMARY KEY, \"checksum\" TEXT NOT NULL)";

/// Selects the name and the checksum of each migration that has run.
pub const MIGRATIONS_DONE: &str = "SELECT \"name\", \"checksum\" FROM \"schema_migrations\"";

/// Records that a migration has run. Binds its name and checksum.
pub const RECORD_MIGRATION: &str = "INSERT INTO \"schema_migrations\" VALUES ($1, $2)";

/// A migration that has not run yet. An engine runs the text and records name and checksum, in one transaction that
/// excludes other processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingMigration {
    /// The name of the migration.
    pub name: &'static str,
    /// The checksum to record: the SHA-256 of the text, in hex.
    pub checksum: String,
    /// The statements of the migration.
    pub text: &'static str,
}

fn checksum(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// Returns the migrations that have not run, in order. `done` has the names and checksums of those that have run.
///
/// # Errors
/// [`StoreError::Backend`] if a newer version created the database, or if a migration has changed since it ran.
pub fn pending(
    done: &[(String, String)],
    dialect: Dialect,
) -> Result<Vec<PendingMigration>, StoreError> {
    let unknown = |name: &String| ALL.iter().all(|migration| migration.name != name);
    if let Some((name, _)) = done.iter().find(|(name, _)| unknown(name)) {
        return Err(StoreError::backend(format!(
            "the database was created by a newer version: it has migration {name}"
        )));
    }
    let mut pending = Vec::new();
    for migration in ALL {
        let (name, text) = (migration.name, migration.text(dialect));
        let checksum = checksum(text);
        match done.iter().find(|(done, _)| done == name) {
            None => pending.push(PendingMigration {
                name,
                checksum,
                text,
            }),
            Some((_, sum)) if *sum == checksum => {}
            Some(_) => {
                return Err(StoreError::backend(format!(
                    "migration {name} has changed since it ran"
                )));
            }
        }
    }
    Ok(pending)
}

/// Checks that all migrations have run.
///
/// # Errors
/// [`StoreError::Backend`] if an older or a newer version created the database.
pub fn ensure_done(done: &[(String, String)], dialect: Dialect) -> Result<(), StoreError> {
    match pending(done, dialect)?.first() {
        None => Ok(()),
        Some(migration) => Err(StoreError::backend(format!(
            "the database was created by an older version: it lacks migration {}; start a server of this version once",
            migration.name
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(migration: &Migration) -> (String, String) {
        (migration.name.to_owned(), checksum(migration.sqlite))
    }

    fn on_sqlite(done: &[(String, String)]) -> Result<Vec<PendingMigration>, StoreError> {
        pending(done, Dialect::Sqlite)
    }

    #[test]
    fn migrations_that_have_run_are_not_pending() {
        assert_eq!(on_sqlite(&[]).unwrap().len(), ALL.len());
        let first = ran(&ALL[0]);
        assert!(ensure_done(std::slice::from_ref(&first), Dialect::Sqlite).is_err());
        let all: Vec<_> = ALL.iter().map(ran).collect();
        assert!(ensure_done(&all, Dialect::Sqlite).is_ok());
        let rest = on_sqlite(&[first]).unwrap();
        assert_eq!(rest.len(), ALL.len() - 1);
        assert!(rest.iter().all(|m| m.name != ALL[0].name));
    }

    #[test]
    fn a_changed_or_unknown_migration_is_refused() {
        let changed = (ALL[0].name.to_owned(), "0".repeat(64));
        assert!(on_sqlite(&[changed]).is_err());
        let unknown = ("9999_future".to_owned(), String::new());
        assert!(on_sqlite(&[unknown]).is_err());
    }
}
