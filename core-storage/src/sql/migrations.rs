//! The numbered files that bring a database to the described schema. Forward only; a file never changes once released.

use core_domain::kernel::{StoreError, hex};
use sha2::{Digest, Sha256};

/// A migration: its name, and its text for SQLite and Postgres.
#[derive(Debug)]
pub(crate) struct Migration {
    pub(crate) name: &'static str,
    #[cfg(feature = "sqlite")]
    pub(crate) sqlite: &'static str,
    #[cfg(feature = "postgres")]
    pub(crate) postgres: &'static str,
}

/// Every migration, in the order they run in: the files of `migrations/`, listed by the build script.
pub(crate) const ALL: &[Migration] = include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

/// Creates the table of the migrations that have run.
pub(crate) const MIGRATIONS_TABLE: &str = "CREATE TABLE IF NOT EXISTS \"schema_migrations\" \
     (\"name\" TEXT NOT NULL PRIMARY KEY, \"checksum\" TEXT NOT NULL)";

/// SHA-256 of a migration's text, in hex.
pub(crate) fn checksum(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// Those that have not run, given names and checksums of those that have.
pub(crate) fn pending(
    done: &[(String, String)],
    text: fn(&Migration) -> &'static str,
) -> Result<Vec<&'static Migration>, StoreError> {
    let unknown = |name: &String| ALL.iter().all(|migration| migration.name != name);
    if let Some((name, _)) = done.iter().find(|(name, _)| unknown(name)) {
        return Err(StoreError::backend(format!(
            "the database was made by a newer version: it has migration {name}"
        )));
    }
    let mut pending = Vec::new();
    for migration in ALL {
        match done.iter().find(|(name, _)| name == migration.name) {
            None => pending.push(migration),
            Some((_, sum)) if *sum == checksum(text(migration)) => {}
            Some(_) => {
                return Err(StoreError::backend(format!(
                    "migration {} has changed since it ran",
                    migration.name
                )));
            }
        }
    }
    Ok(pending)
}

#[cfg(all(test, feature = "sqlite"))]
mod tests {
    use super::*;

    fn ran(migration: &Migration) -> (String, String) {
        (migration.name.to_owned(), checksum(migration.sqlite))
    }

    #[test]
    fn only_what_has_not_run_is_pending() {
        assert_eq!(pending(&[], |m| m.sqlite).unwrap().len(), ALL.len());
        let first = ran(&ALL[0]);
        let rest = pending(&[first], |m| m.sqlite).unwrap();
        assert_eq!(rest.len(), ALL.len() - 1);
        assert!(rest.iter().all(|m| m.name != ALL[0].name));
    }

    #[test]
    fn a_changed_or_unknown_migration_is_refused() {
        let changed = (ALL[0].name.to_owned(), "0".repeat(64));
        assert!(pending(&[changed], |m| m.sqlite).is_err());
        let unknown = ("9999_future".to_owned(), String::new());
        assert!(pending(&[unknown], |m| m.sqlite).is_err());
    }
}
