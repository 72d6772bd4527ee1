//! The numbered files that bring a database to the described schema. Forward only; a file never changes once released.

use core_domain::kernel::{StoreError, hex};
use sha2::{Digest, Sha256};

use super::dialect::Dialect;

/// A migration: its name, and its text for each dialect.
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

/// Every migration, in the order they run in: the files of `migrations/`, listed by the build script.
const ALL: &[Migration] = include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

/// Creates the table of the migrations that have run.
pub const MIGRATIONS_TABLE: &str = "CREATE TABLE IF NOT EXISTS \"schema_migrations\" \
     (\"name\" TEXT NOT NULL PRIMARY KEY, \"checksum\" TEXT NOT NULL)";

/// Answers name and checksum of each migration that has run.
pub const MIGRATIONS_DONE: &str = "SELECT \"name\", \"checksum\" FROM \"schema_migrations\"";

/// Notes that a migration has run; binds its name and checksum.
pub const NOTE_MIGRATION: &str = "INSERT INTO \"schema_migrations\" VALUES ($1, $2)";

/// A migration that has not run yet. An engine runs the text and notes name and checksum, all in one transaction that
/// keeps other processes out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Its name.
    pub name: &'static str,
    /// What it is noted with: SHA-256 of the text, in hex.
    pub checksum: String,
    /// Its statements.
    pub text: &'static str,
}

fn checksum(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// Those that have not run, in their order, given names and checksums of those that have.
///
/// # Errors
/// [`StoreError::Backend`] when the database was made by a newer version, or a migration has changed since it ran.
pub fn pending(done: &[(String, String)], dialect: Dialect) -> Result<Vec<Pending>, StoreError> {
    let unknown = |name: &String| ALL.iter().all(|migration| migration.name != name);
    if let Some((name, _)) = done.iter().find(|(name, _)| unknown(name)) {
        return Err(StoreError::backend(format!(
            "the database was made by a newer version: it has migration {name}"
        )));
    }
    let mut pending = Vec::new();
    for migration in ALL {
        let (name, text) = (migration.name, migration.text(dialect));
        let checksum = checksum(text);
        match done.iter().find(|(done, _)| done == name) {
            None => pending.push(Pending {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(migration: &Migration) -> (String, String) {
        (migration.name.to_owned(), checksum(migration.sqlite))
    }

    fn on_sqlite(done: &[(String, String)]) -> Result<Vec<Pending>, StoreError> {
        pending(done, Dialect::Sqlite)
    }

    #[test]
    fn only_what_has_not_run_is_pending() {
        assert_eq!(on_sqlite(&[]).unwrap().len(), ALL.len());
        let first = ran(&ALL[0]);
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
