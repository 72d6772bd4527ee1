//! The numbered migrations that bring a database to the described schema. There are no down migrations, and a released
//! file never changes.
//!
//! # Servers of two releases on one database
//! A migration expands the schema first and contracts it a release later, so that servers of neighbouring releases can
//! use one database. The first lines of a file declare what the rules need:
//!
//! ```sql
//! -- release 0.3.0
//! -- unused since 0.2.0: entities.seats
//! -- outside a transaction
//! -- only in a new database
//! ```
//!
//! - `release`: the release that brings the migration. The files without this line belong to the first release.
//! - `unused since`: the migration removes these columns or tables, and this is the first release that does not use
//!   them. Servers of earlier releases cannot use the database afterwards, see [`MigrationError::TooNew`] and
//!   [`MigrationError::SkipsRelease`].
//! - `outside a transaction`: only on Postgres. Each statement creates or drops an index `CONCURRENTLY`, so that servers
//!   go on writing. A build that was interrupted is repeated.
//! - `only in a new database`: only on Postgres. A database that exists keeps what the migration would change, which servers
//!   can use as well.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::hex;
use sha2::{Digest, Sha256};

use super::dialect::Dialect;
pub use super::release::Release;

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

    fn pending(&self, dialect: Dialect) -> PendingMigration {
        let text = self.text(dialect);
        let mut pending = PendingMigration {
            name: self.name,
            release: Release::FIRST,
            requires: None,
            runs_outside: false,
            is_for_new_databases: false,
            checksum: checksum(text),
            text,
        };
        for line in declarations(text) {
            pending.declare(line);
        }
        pending
    }
}

/// All migrations in the order in which they run: the files of `migrations/`, listed by the build script.
const ALL: &[Migration] = include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

/// Creates the table of the migrations that have run.
pub const MIGRATIONS_TABLE: &str = "CREATE TABLE IF NOT EXISTS \"schema_migrations\" (\
     \"name\" TEXT NOT NULL PRIMARY KEY, \"checksum\" TEXT NOT NULL, \"release\" TEXT, \"requires\" TEXT)";

/// Adds the columns that the table does not have in databases of early servers.
pub const MIGRATIONS_COLUMNS: [&str; 2] = [
    "ALTER TABLE \"schema_migrations\" ADD COLUMN \"release\" TEXT",
    "ALTER TABLE \"schema_migrations\" ADD COLUMN \"requires\" TEXT",
];

/// Selects the migrations that have run, for [`AppliedMigration::from_texts`].
pub const MIGRATIONS_DONE: &str = "SELECT * FROM \"schema_migrations\"";

/// Records that a migration has run. Binds [`PendingMigration::record`].
pub const RECORD_MIGRATION: &str =
    "INSERT INTO \"schema_migrations\" VALUES ($1, $2, $3, NULLIF($4, ''))";

/// The text before the declaration of what is removed.
const UNUSED: &str = "unused since ";

/// Returns the declarations in the first lines of a migration.
fn declarations(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map_while(|line| line.strip_prefix("-- "))
}

/// A migration that has run on a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedMigration {
    name: String,
    checksum: String,
    /// The release that brought it; `None` if an early server has run it.
    release: Option<Release>,
    /// The first release whose servers can use the database since; `None` if all can, or if an early server has run it.
    requires: Option<Release>,
}

impl AppliedMigration {
    /// Creates it from the columns of a row of [`MIGRATIONS_DONE`], with empty texts for NULL.
    #[must_use]
    pub fn from_texts(mut columns: Vec<String>) -> Self {
        columns.resize(4, String::new());
        let release = |column: Option<&String>| Release::parse(column?);
        let (release, requires) = (release(columns.get(2)), release(columns.get(3)));
        let mut texts = columns.into_iter();
        Self {
            name: texts.next().unwrap_or_default(),
            checksum: texts.next().unwrap_or_default(),
            release,
            requires,
        }
    }
}

/// A migration that has not run yet. An engine runs the text and records it, in one transaction that excludes other
/// processes, or statement by statement if it [runs outside](Self::runs_outside) a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingMigration {
    /// The name of the migration.
    pub name: &'static str,
    /// The release that brings the migration.
    pub release: Release,
    /// The first release whose servers can use the database afterwards; `None` if the migration removes nothing.
    pub requires: Option<Release>,
    /// `true` if the statements run outside a transaction. Always `false` on SQLite.
    pub runs_outside: bool,
    /// `true` if the migration is only recorded, and does not run, in a database that exists. Always `false` on SQLite.
    pub is_for_new_databases: bool,
    /// The checksum to record: the SHA-256 of the text, in hex.
    pub checksum: String,
    /// The statements of the migration.
    pub text: &'static str,
}

impl PendingMigration {
    fn declare(&mut self, line: &str) {
        if let Some(release) = line.strip_prefix("release ") {
            self.release = Release::parse(release).unwrap_or(self.release);
        } else if let Some((since, _)) = line
            .strip_prefix(UNUSED)
            .and_then(|rest| rest.split_once(": "))
        {
            self.requires = self.requires.max(Release::parse(since));
        } else if line == "outside a transaction" {
            self.runs_outside = true;
        } else if line == "only in a new database" {
            self.is_for_new_databases = true;
        }
    }

    /// Returns the values that [`RECORD_MIGRATION`] binds.
    #[must_use]
    pub fn record(&self) -> [String; 4] {
        let requires = self.requires.map(|release| release.to_string());
        [
            self.name.to_owned(),
            self.checksum.clone(),
            self.release.to_string(),
            requires.unwrap_or_default(),
        ]
    }

    /// Returns the statements of the migration, without comments.
    pub fn statements(&self) -> impl Iterator<Item = String> {
        let lines = self.text.lines().filter(|line| !line.starts_with("--"));
        let text: Vec<&str> = lines.collect();
        let statements: Vec<String> = text
            .join("\n")
            .split(";\n")
            .map(|statement| statement.trim().trim_end_matches(';').to_owned())
            .filter(|statement| !statement.is_empty())
            .collect();
        statements.into_iter()
    }

    /// Returns the text for a transaction on a new database, whose indexes need not be built concurrently.
    #[cfg(feature = "postgres-sql")]
    pub(crate) fn text_for_new_database(&self) -> String {
        self.text.replace(" INDEX CONCURRENTLY ", " INDEX ")
    }

    /// Returns the names of the tables and columns that the migration removes, as declared.
    pub fn removes(&self) -> impl Iterator<Item = &'static str> + use<> {
        let lines = declarations(self.text).filter_map(|line| line.strip_prefix(UNUSED));
        let names = lines.filter_map(|rest| rest.split_once(": "));
        names.flat_map(|(_, names)| names.split(", "))
    }
}

fn checksum(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// The reason why migrations cannot run on a database, or why this server cannot use it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MigrationError {
    /// A later release has removed something that this server uses.
    #[error(
        "the database has migration {name}, which servers of release {requires} and later can use, and this one has \
         release {own}: start a later release, or restore a backup"
    )]
    TooNew {
        /// The name of the migration.
        name: String,
        /// The first release whose servers can use the database.
        requires: Release,
        /// The release of this program.
        own: Release,
    },
    /// The database has a migration that this program cannot judge, because no release is recorded with it, or because
    /// this program has other migrations that have not run.
    #[error(
        "the database has the unknown migration {name}: it belongs to another program or to another version"
    )]
    Unknown {
        /// The name of the migration.
        name: String,
    },
    /// The file of a migration has changed since it ran.
    #[error("migration {name} has changed since it ran")]
    Changed {
        /// The name of the migration.
        name: &'static str,
    },
    /// A migration would remove what servers that may still run use.
    #[error(
        "migration {name} removes what servers before release {requires} use, and the database was last migrated by \
         release {last}: start release {requires} on all nodes first, or stop all servers and run `core-server \
         migrate --apply --all-stopped`"
    )]
    SkipsRelease {
        /// The name of the migration.
        name: &'static str,
        /// The first release whose servers do not use what is removed.
        requires: Release,
        /// The last release whose migrations have run.
        last: Release,
    },
    /// Migrations have not run, and this program may not run them.
    #[error(
        "the database was created by an older version: it lacks migration {name}; run `core-server migrate --apply`"
    )]
    Missing {
        /// The name of the first migration that has not run.
        name: &'static str,
    },
}

/// A function that is called with the progress of migrations.
pub type MigrationListener = Arc<dyn Fn(&MigrationEvent) + Send + Sync>;

/// How the migrations of a database run when its store is opened.
#[derive(Clone)]
pub struct MigrationOptions {
    /// Pending migrations run if this is `true`. Otherwise a database with pending migrations is refused, and extra tables are
    /// not created. Default: `true`.
    pub at_open: bool,
    /// `true` if no other server uses the database, so that a migration may remove what servers of earlier releases use.
    /// Default: `false`.
    pub all_servers_stopped: bool,
    /// How long a statement on Postgres waits for the lock of a table before the others can run again. It should be
    /// shorter than the server's `deadlock_timeout` (1 s), so that a deadlock ends an attempt of the migration and not a
    /// request. Default: 800 ms.
    pub lock_timeout: Duration,
    /// Is called with the progress. Default: nothing is called.
    pub listener: Option<MigrationListener>,
}

impl Default for MigrationOptions {
    fn default() -> Self {
        Self {
            at_open: true,
            all_servers_stopped: false,
            lock_timeout: Duration::from_millis(800),
            listener: None,
        }
    }
}

impl fmt::Debug for MigrationOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MigrationOptions")
            .field("at_open", &self.at_open)
            .field("all_servers_stopped", &self.all_servers_stopped)
            .field("lock_timeout", &self.lock_timeout)
            .finish_non_exhaustive()
    }
}

/// The progress of migrations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MigrationEvent {
    /// The migration of this name has run.
    Ran(&'static str),
    /// The migration of this name builds indexes, which can take long. Servers go on.
    BuildsIndexes(&'static str),
    /// A table is locked, for this reason. The migration is tried again after a pause.
    Waits(String),
}

#[cfg(any(feature = "sqlite", feature = "postgres-sql"))]
impl MigrationOptions {
    pub(crate) fn report(&self, event: &MigrationEvent) {
        if let Some(listener) = &self.listener {
            listener(event);
        }
    }

    /// Checks whether the pending migrations may run.
    pub(crate) fn ensure_may_run(
        &self,
        done: &[AppliedMigration],
        pending: &[PendingMigration],
    ) -> Result<(), MigrationError> {
        if self.all_servers_stopped {
            return Ok(());
        }
        ensure_no_release_is_skipped(done, pending)
    }
}

/// Returns the migrations that have not run, in order. Migrations of a later release are accepted if servers of this
/// release can use the database after them.
///
/// # Errors
/// [`MigrationError`] if this program cannot use the database, or if a migration has changed since it ran.
pub fn pending(
    done: &[AppliedMigration],
    dialect: Dialect,
) -> Result<Vec<PendingMigration>, MigrationError> {
    let all: Vec<_> = ALL.iter().map(|one| one.pending(dialect)).collect();
    pending_of(all, done, Release::current())
}

fn pending_of(
    all: Vec<PendingMigration>,
    done: &[AppliedMigration],
    own: Release,
) -> Result<Vec<PendingMigration>, MigrationError> {
    let is_unknown = |one: &&AppliedMigration| all.iter().all(|known| known.name != one.name);
    let unknown: Vec<&AppliedMigration> = done.iter().filter(is_unknown).collect();
    for later in &unknown {
        let name = later.name.clone();
        if later.release.is_none() {
            return Err(MigrationError::Unknown { name });
        }
        if let Some(requires) = later.requires.filter(|requires| *requires > own) {
            return Err(MigrationError::TooNew {
                name,
                requires,
                own,
            });
        }
    }
    let mut pending = Vec::new();
    for migration in all {
        match done.iter().find(|done| done.name == migration.name) {
            None => pending.push(migration),
            Some(applied) if applied.checksum == migration.checksum => {}
            Some(_) => {
                let name = migration.name;
                return Err(MigrationError::Changed { name });
            }
        }
    }
    match unknown.first() {
        // The later migrations were made for a schema with these.
        Some(later) if !pending.is_empty() => Err(MigrationError::Unknown {
            name: later.name.clone(),
        }),
        _ => Ok(pending),
    }
}

/// Returns the last release that has migrated a database; `None` if it is new.
pub(super) fn last_release(done: &[AppliedMigration]) -> Option<Release> {
    let releases = done.iter().map(|one| one.release.unwrap_or(Release::FIRST));
    releases.max()
}

/// Checks that the migrations remove nothing that servers use which may still run: those of the last release that has
/// migrated the database. A new database has no servers.
///
/// # Errors
/// [`MigrationError::SkipsRelease`] for the first migration that does.
pub fn ensure_no_release_is_skipped(
    done: &[AppliedMigration],
    pending: &[PendingMigration],
) -> Result<(), MigrationError> {
    let Some(last) = last_release(done) else {
        return Ok(());
    };
    for migration in pending {
        if let Some(requires) = migration.requires.filter(|requires| *requires > last) {
            let name = migration.name;
            return Err(MigrationError::SkipsRelease {
                name,
                requires,
                last,
            });
        }
    }
    Ok(())
}

/// Returns what to record if all migrations have run, but none of this release: that this release has used the
/// database. Binds like [`PendingMigration::record`]. Returns `None` if a migration of this or a later release has run.
#[must_use]
pub fn release_to_record(done: &[AppliedMigration]) -> Option<[String; 4]> {
    let own = Release::current();
    let is_recorded = last_release(done).is_some_and(|last| last >= own);
    let text = || own.to_string();
    (!is_recorded).then(|| [format!("release {own}"), text(), text(), String::new()])
}

/// Checks that all migrations have run.
///
/// # Errors
/// [`MigrationError`] if an older version created the database, or one that this program cannot use.
pub fn ensure_done(done: &[AppliedMigration], dialect: Dialect) -> Result<(), MigrationError> {
    match pending(done, dialect)?.first() {
        None => Ok(()),
        Some(migration) => Err(MigrationError::Missing {
            name: migration.name,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn migration(name: &'static str, text: &'static str) -> PendingMigration {
        let (sqlite, postgres) = (text, text);
        Migration {
            name,
            sqlite,
            postgres,
        }
        .pending(Dialect::Postgres)
    }

    fn as_applied(migration: &PendingMigration) -> AppliedMigration {
        AppliedMigration::from_texts(migration.record().to_vec())
    }

    fn by_early_server(migration: &PendingMigration) -> AppliedMigration {
        let [name, checksum, ..] = migration.record();
        AppliedMigration::from_texts(vec![name, checksum])
    }

    fn release(text: &str) -> Release {
        Release::parse(text).unwrap()
    }

    fn first() -> PendingMigration {
        migration("0001_a", "CREATE TABLE a (b TEXT);")
    }

    fn expansion() -> PendingMigration {
        migration(
            "0002_b",
            "-- release 0.2.0\nALTER TABLE a ADD COLUMN c TEXT;",
        )
    }

    fn contraction() -> PendingMigration {
        let text = "-- release 0.3.0\n-- unused since 0.2.0: a.b, c\nALTER TABLE a DROP COLUMN b;";
        migration("0003_c", text)
    }

    fn all() -> Vec<PendingMigration> {
        vec![first(), expansion(), contraction()]
    }

    #[test]
    fn the_first_lines_declare_release_removals_and_transaction() {
        let first = first();
        assert_eq!((first.release, first.requires), (Release::FIRST, None));
        assert!(!first.runs_outside);
        let contraction = contraction();
        assert_eq!(contraction.release, release("0.3.0"));
        assert_eq!(contraction.requires, Some(release("0.2.0")));
        assert_eq!(contraction.removes().collect::<Vec<_>>(), ["a.b", "c"]);
        let index = migration(
            "0004_i",
            "-- release 0.3.0\n-- outside a transaction\nCREATE INDEX i ON a (c);\nDROP INDEX k;\n",
        );
        assert!(index.runs_outside);
        let statements: Vec<String> = index.statements().collect();
        assert_eq!(statements, ["CREATE INDEX i ON a (c)", "DROP INDEX k"]);
    }

    #[test]
    fn every_file_after_the_first_three_declares_its_release_and_only_index_builds_run_outside() {
        for dialect in Dialect::ALL {
            for migration in pending(&[], dialect).unwrap() {
                let has_release = declarations(migration.text)
                    .filter_map(|line| line.strip_prefix("release "))
                    .any(|text| Release::parse(text).is_some_and(|of| of <= Release::current()));
                let is_early = migration.name < "0004";
                assert!(has_release || is_early, "{}", migration.name);
                let keeps_ids = !migration.text.contains(" TYPE UUID");
                let is_new = migration.is_for_new_databases;
                assert!(keeps_ids || is_new, "{}", migration.name);
                if !migration.runs_outside {
                    continue;
                }
                assert_eq!(dialect, Dialect::Postgres, "{}", migration.name);
                for statement in migration.statements() {
                    let words: Vec<&str> = statement.split(' ').collect();
                    let is_index = words.contains(&"INDEX") && words.contains(&"CONCURRENTLY");
                    assert!(is_index, "{}: {statement}", migration.name);
                }
            }
        }
    }

    #[test]
    fn migrations_that_have_run_are_not_pending_whoever_has_run_them() {
        let names = |done: &[AppliedMigration]| {
            let pending = pending_of(all(), done, release("0.3.0")).unwrap();
            pending.iter().map(|one| one.name).collect::<Vec<_>>()
        };
        assert_eq!(names(&[]), ["0001_a", "0002_b", "0003_c"]);
        assert_eq!(names(&[by_early_server(&first())]), ["0002_b", "0003_c"]);
        let done: Vec<_> = all().iter().map(as_applied).collect();
        assert_eq!(names(&done), [""; 0]);
    }

    #[test]
    fn a_server_uses_a_database_of_a_later_release_until_something_it_uses_is_removed() {
        let known = |count| all().into_iter().take(count).collect::<Vec<_>>();
        let done: Vec<_> = all().iter().map(as_applied).collect();
        // After the expansion of 0.2.0, servers of 0.1.0 go on and can be started again.
        let started = pending_of(known(1), &done[..2], release("0.1.0"));
        assert_eq!(started, Ok(Vec::new()));
        let started = pending_of(known(2), &done, release("0.2.0"));
        assert_eq!(started, Ok(Vec::new()));
        let refused = pending_of(known(1), &done, release("0.1.0")).unwrap_err();
        let text = refused.to_string();
        assert!(text.contains("0003_c") && text.contains("0.2.0"), "{text}");
    }

    #[test]
    fn a_changed_or_foreign_migration_is_refused() {
        let mut changed = as_applied(&first());
        changed.checksum = "0".repeat(64);
        let refused = pending_of(all(), &[changed], release("0.3.0")).unwrap_err();
        assert_eq!(refused, MigrationError::Changed { name: "0001_a" });
        let unknown = |done: &[AppliedMigration]| {
            let refused = pending_of(all(), done, release("0.3.0")).unwrap_err();
            assert!(matches!(refused, MigrationError::Unknown { .. }));
        };
        let other = migration("0002_other", "-- release 0.2.0\nSELECT 1;");
        // No release is recorded, or migrations of this program are missing below it.
        unknown(&[by_early_server(&other)]);
        unknown(&[as_applied(&first()), as_applied(&other)]);
    }

    #[test]
    fn a_contraction_does_not_run_while_servers_that_need_it_may_run() {
        let check = |done: &[AppliedMigration]| {
            let pending = pending_of(all(), done, release("0.3.0")).unwrap();
            ensure_no_release_is_skipped(done, &pending)
        };
        assert_eq!(check(&[]), Ok(()), "a new database");
        let skipped = check(&[by_early_server(&first())]).unwrap_err();
        let expected = MigrationError::SkipsRelease {
            name: "0003_c",
            requires: release("0.2.0"),
            last: release("0.1.0"),
        };
        assert_eq!(skipped, expected);
        assert_eq!(
            check(&[as_applied(&first()), as_applied(&expansion())]),
            Ok(())
        );
    }

    #[test]
    fn a_release_without_migrations_is_recorded_once() {
        let own = Release::current().to_string();
        let name = format!("release {own}");
        let record = release_to_record(&[]).unwrap();
        assert_eq!(record[0], name);
        let done = [AppliedMigration::from_texts(record.to_vec())];
        assert_eq!(release_to_record(&done), None);
        let later = migration("9999_z", "-- release 999.0.0\nSELECT 1;");
        assert_eq!(release_to_record(&[as_applied(&later)]), None);
    }

    #[test]
    fn a_missing_migration_is_named_with_the_command_that_runs_it() {
        let refused = ensure_done(&[], Dialect::Sqlite).unwrap_err().to_string();
        assert!(refused.contains("0001_initial"), "{refused}");
        assert!(refused.contains("migrate --apply"), "{refused}");
    }
}
