//! Runs the migrations.
//!
//! The migrations of a new database are one transaction, which makes the columns of generated ids `UUID`. In a database that an
//! early server has created they stay text, because to change their type would lock each table for as long as it takes to write
//! it again. Statements are written for either, see [`has_uuids`].
//!
//! Later, each migration is one transaction, except builds of indexes, which run `CONCURRENTLY` and therefore outside of one. An
//! advisory lock excludes other processes. Processes look for it again and again instead of waiting in the database: a
//! transaction that waits would keep a concurrent build of an index from ending, which has the lock.
//!
//! A statement that waits for the lock of a table also blocks all later statements on the table. It therefore waits only
//! for a short time, and the migration is tried again after a pause in which the others can run.

use std::time::Duration;

use core_domain::kernel::StoreError;
use tokio::time::{Instant, sleep};

use crate::sql::migrations::{
    self, AppliedMigration, MigrationEvent, MigrationOptions, PendingMigration,
};
use crate::sql::{Dialect, ddl};
use crate::table::Table;

/// Waiting for other processes and building an index have no time limit.
const BEGIN: &str = "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; \
     SET LOCAL idle_in_transaction_session_timeout = 0";
/// Held until the transaction ends. The number is arbitrary and unlikely to be used by anything else on the database.
const TRY_LOCK: &str = "SELECT pg_try_advisory_xact_lock(7305401991423)::text";
/// The same lock, held by the session.
const TRY_SESSION_LOCK: &str = "SELECT pg_try_advisory_lock(7305401991423)::text";
const SESSION_UNLOCK: &str = "SELECT pg_advisory_unlock(7305401991423)::text";
const SESSION_TIMEOUTS: &str = "SET statement_timeout = 0; SET lock_timeout = 0";
const RESET_TIMEOUTS: &str = "RESET statement_timeout; RESET lock_timeout";
/// Whether the columns of generated ids are `UUID`. All are, or none is.
const HAS_UUIDS: &str = "SELECT (atttypid = 'uuid'::regtype)::text FROM pg_attribute \
     WHERE attrelid = to_regclass('platforms') AND attname = 'id'";
/// The number of columns of the table of migrations; 0 if it does not exist.
const TABLE_COLUMNS: &str = "SELECT count(*)::text FROM information_schema.columns \
     WHERE table_schema = current_schema() AND table_name = 'schema_migrations'";
/// An index of this name whose build was interrupted.
const INVALID_INDEX: &str = "SELECT c.relname::text FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid \
     WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = $1 AND NOT i.indisvalid";

/// How long to wait before looking for the lock of other processes again.
const BUSY_PAUSE: Duration = Duration::from_millis(100);
/// How long other statements can run before a migration waits for the lock of a table again.
const LOCK_PAUSE: Duration = Duration::from_secs(1);
/// How long a migration waits for the lock of a table, with pauses, before it fails.
const MAX_LOCK_WAIT: Duration = Duration::from_secs(10 * 60);

/// A connection that runs migrations.
pub trait MigrationConnection: Send {
    /// Runs one or more statements without parameters.
    ///
    /// # Errors
    /// Only those of the database.
    fn run(&mut self, text: &str) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Runs a statement with text parameters. Returns its rows, whose columns are texts; NULL is an empty text.
    ///
    /// # Errors
    /// Only those of the database.
    fn rows(
        &mut self,
        statement: &'static str,
        texts: &[&str],
    ) -> impl Future<Output = Result<Vec<Vec<String>>, StoreError>> + Send;
}

/// The place of the tables, and the tables that are not described by this crate.
#[derive(Clone, Copy, Debug)]
pub struct MigrationTarget<'t> {
    /// The schema of the tables, which is created if it is missing. `None`: the schema of the connection.
    pub schema: Option<&'t str>,
    /// Whether the connection has another search path, which then has to be set.
    pub sets_search_path: bool,
    /// Tables that are created if they are missing.
    pub extra: &'t [&'static Table],
}

impl MigrationTarget<'_> {
    /// Returns the statement that makes the schema the only one, for the transaction or for the session.
    fn search_path(&self, set: &str) -> Option<String> {
        let schema = self.schema.filter(|_| self.sets_search_path)?;
        Some(format!("{set} search_path = {}", ddl::quote_ident(schema)))
    }
}

/// The result of one transaction.
enum Step {
    /// Another process runs migrations.
    Busy,
    /// The migrations of these names have run.
    Ran(Vec<&'static str>),
    /// This migration has to run outside a transaction.
    Outside(PendingMigration),
    /// All migrations have run, and all extra tables exist.
    Done,
}

/// Creates the schema if it is missing, runs the pending migrations, and creates the extra tables that are missing.
/// Processes that do this at the same time wait for each other.
///
/// # Errors
/// [`StoreError::Backend`] with a [`MigrationError`](migrations::MigrationError) if this program cannot use the database.
/// [`StoreError::Retry`] if a table stayed locked for ten minutes.
pub async fn migrate<C: MigrationConnection>(
    connection: &mut C,
    target: &MigrationTarget<'_>,
    options: &MigrationOptions,
) -> Result<(), StoreError> {
    let mut locked_since = None;
    loop {
        match step(connection, target, options).await {
            Ok(Step::Done) => return Ok(()),
            Ok(Step::Busy) => sleep(BUSY_PAUSE).await,
            Ok(Step::Ran(names)) => {
                locked_since = None;
                for name in names {
                    options.report(&MigrationEvent::Ran(name));
                }
            }
            Ok(Step::Outside(migration)) => {
                options.report(&MigrationEvent::BuildsIndexes(migration.name));
                if run_outside(connection, target, &migration).await? {
                    options.report(&MigrationEvent::Ran(migration.name));
                } else {
                    sleep(BUSY_PAUSE).await;
                }
            }
            Err(StoreError::Retry(cause)) => {
                connection.run("ROLLBACK").await?;
                let since = *locked_since.get_or_insert_with(Instant::now);
                if since.elapsed() > MAX_LOCK_WAIT {
                    return Err(StoreError::Retry(cause));
                }
                options.report(&MigrationEvent::Waits(cause.to_string()));
                sleep(LOCK_PAUSE).await;
            }
            Err(error) => {
                // The connection may be lost, so the first error is the one to report.
                let _ = connection.run("ROLLBACK").await;
                return Err(error);
            }
        }
    }
}

/// Runs the first pending migration in a transaction; all migrations if the database is new. After an error the transaction is
/// open.
async fn step<C: MigrationConnection>(
    connection: &mut C,
    target: &MigrationTarget<'_>,
    options: &MigrationOptions,
) -> Result<Step, StoreError> {
    connection.run(BEGIN).await?;
    if let Some(search_path) = target.search_path("SET LOCAL") {
        connection.run(&search_path).await?;
    }
    if !is_true(&connection.rows(TRY_LOCK, &[]).await?) {
        connection.run("ROLLBACK").await?;
        return Ok(Step::Busy);
    }
    if let Some(schema) = target.schema {
        let create = format!("CREATE SCHEMA IF NOT EXISTS {}", ddl::quote_ident(schema));
        connection.run(&create).await?;
    }
    let lock_timeout = options.lock_timeout.as_millis();
    let set = format!("SET LOCAL lock_timeout = {lock_timeout}");
    connection.run(&set).await?;
    let done = read_applied(connection, true).await?;
    let pending = pending(&done)?;
    let may_run = options.ensure_may_run(&done, &pending);
    may_run.map_err(StoreError::backend)?;
    let step = match pending.into_iter().next() {
        None => {
            finish(connection, target, &done).await?;
            Step::Done
        }
        Some(_) if done.is_empty() => Step::Ran(create(connection).await?),
        Some(migration) if migration.runs_outside => Step::Outside(migration),
        Some(migration) => {
            if !migration.is_for_new_databases {
                let text = fitting(connection, migration.text.to_owned()).await?;
                connection.run(&text).await?;
            }
            record(connection, &migration.record()).await?;
            Step::Ran(vec![migration.name])
        }
    };
    connection.run("COMMIT").await?;
    Ok(step)
}

/// Runs all migrations on a new database. Returns their names.
async fn create<C: MigrationConnection>(
    connection: &mut C,
) -> Result<Vec<&'static str>, StoreError> {
    let all = pending(&[])?;
    for migration in &all {
        connection.run(&migration.text_for_new_database()).await?;
        record(connection, &migration.record()).await?;
    }
    Ok(all.iter().map(|migration| migration.name).collect())
}

/// Returns statements that create tables or columns, with the type of ids that the database has.
async fn fitting<C: MigrationConnection>(
    connection: &mut C,
    statements: String,
) -> Result<String, StoreError> {
    match has_uuids(connection).await? {
        true => Ok(statements),
        false => Ok(ddl::with_text_ids(&statements)),
    }
}

/// Returns whether the database stores generated ids as UUIDs, in 16 bytes. Databases of early servers store them as text, also
/// after their migrations.
///
/// # Errors
/// Those of the database.
pub async fn has_uuids<C: MigrationConnection>(connection: &mut C) -> Result<bool, StoreError> {
    Ok(is_true(&connection.rows(HAS_UUIDS, &[]).await?))
}

/// Creates the extra tables, and records the release if it has no migration.
async fn finish<C: MigrationConnection>(
    connection: &mut C,
    target: &MigrationTarget<'_>,
    done: &[AppliedMigration],
) -> Result<(), StoreError> {
    if let Some(release) = migrations::release_to_record(done) {
        record(connection, &release).await?;
    }
    if target.extra.is_empty() {
        return Ok(());
    }
    let extra = target.extra.iter();
    let create = extra.map(|table| ddl::create(table, Dialect::Postgres, true));
    let create = fitting(connection, create.collect()).await?;
    connection.run(&create).await
}

/// Runs the statements of a migration outside a transaction. Returns `false` if another process has the lock.
async fn run_outside<C: MigrationConnection>(
    connection: &mut C,
    target: &MigrationTarget<'_>,
    migration: &PendingMigration,
) -> Result<bool, StoreError> {
    if !is_true(&connection.rows(TRY_SESSION_LOCK, &[]).await?) {
        return Ok(false);
    }
    let ran = run_locked(connection, target, migration).await;
    // The connection may be lost, so the first error is the one to report. The end of the session frees the lock.
    let reset = async {
        connection.run(RESET_TIMEOUTS).await?;
        if target.search_path("SET").is_some() {
            connection.run("RESET search_path").await?;
        }
        connection.rows(SESSION_UNLOCK, &[]).await
    };
    let unlocked = reset.await;
    ran?;
    unlocked?;
    Ok(true)
}

async fn run_locked<C: MigrationConnection>(
    connection: &mut C,
    target: &MigrationTarget<'_>,
    migration: &PendingMigration,
) -> Result<(), StoreError> {
    connection.run(SESSION_TIMEOUTS).await?;
    if let Some(search_path) = target.search_path("SET") {
        connection.run(&search_path).await?;
    }
    // Another process may have run it since.
    let done = read_applied(connection, true).await?;
    let pending = pending(&done)?;
    if !pending.contains(migration) {
        return Ok(());
    }
    for statement in migration.statements() {
        if let Some(index) = index_built_by(&statement) {
            let invalid = connection.rows(INVALID_INDEX, &[index]).await?;
            if !invalid.is_empty() {
                let drop = format!("DROP INDEX CONCURRENTLY {}", ddl::quote_ident(index));
                connection.run(&drop).await?;
            }
        }
        connection.run(&statement).await?;
    }
    record(connection, &migration.record()).await
}

fn pending(done: &[AppliedMigration]) -> Result<Vec<PendingMigration>, StoreError> {
    migrations::pending(done, Dialect::Postgres).map_err(StoreError::backend)
}

/// Returns the name of the index that a statement of a migration builds; `None` for any other statement.
fn index_built_by(statement: &str) -> Option<&str> {
    let (before, rest) = statement.split_once(" INDEX CONCURRENTLY ")?;
    if !before.starts_with("CREATE") {
        return None;
    }
    rest.split('"').nth(1)
}

/// Returns the migrations that have run. Without `creates`, a database without the table of migrations has none.
///
/// # Errors
/// Those of the database.
pub async fn read_applied<C: MigrationConnection>(
    connection: &mut C,
    creates: bool,
) -> Result<Vec<AppliedMigration>, StoreError> {
    let columns = connection.rows(TABLE_COLUMNS, &[]).await?;
    let columns = columns.first().and_then(|row| row.first());
    match columns.map(String::as_str) {
        Some("0") if !creates => return Ok(Vec::new()),
        Some("0") => connection.run(migrations::MIGRATIONS_TABLE).await?,
        Some("2") if creates => {
            for add in migrations::MIGRATIONS_COLUMNS {
                connection.run(add).await?;
            }
        }
        _ => {}
    }
    let rows = connection.rows(migrations::MIGRATIONS_DONE, &[]).await?;
    Ok(rows.into_iter().map(AppliedMigration::from_texts).collect())
}

async fn record<C: MigrationConnection>(
    connection: &mut C,
    record: &[String; 4],
) -> Result<(), StoreError> {
    let texts = record.each_ref().map(String::as_str);
    connection
        .rows(migrations::RECORD_MIGRATION, &texts)
        .await
        .map(drop)
}

fn is_true(rows: &[Vec<String>]) -> bool {
    rows.first().and_then(|row| row.first()).map(String::as_str) == Some("true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_of_a_concurrent_build_is_found() {
        let built = index_built_by(
            "CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS \"a_b\" ON \"a\" (\"b\")",
        );
        assert_eq!(built, Some("a_b"));
        for other in [
            "DROP INDEX CONCURRENTLY \"a_b\"",
            "CREATE INDEX \"a_b\" ON a",
            "SELECT 1",
        ] {
            assert_eq!(index_built_by(other), None, "{other}");
        }
    }
}
