//! Opens the connections and runs the migrations.

use std::time::Duration;

use core_domain::kernel::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::config::{SqliteConfig, Synchronous};
use super::error::statement_error;

use crate::sql::migrations::{
    self, AppliedMigration, MigrationEvent, MigrationOptions, PendingMigration,
};
use crate::sql::{Dialect, ddl};
use crate::table::Table;

/// The number of prepared statements that a connection caches. More than frequent statements exist.
const MAX_CACHED_STATEMENTS: usize = 512;
/// `PRAGMA cache_size` in KiB, which SQLite expects as a negative number.
const WRITER_CACHE_SIZE: i64 = -16_384;
const READER_CACHE_SIZE: i64 = -4_096;
/// No other process writes the file. Only a checkpoint can block a statement, for a short time.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

fn connect(config: &SqliteConfig, flags: OpenFlags) -> Result<Connection, rusqlite::Error> {
    // Only one thread uses a connection at a time, so it needs no mutex.
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&config.path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(MAX_CACHED_STATEMENTS);
    // Plans must not depend on bound values. Otherwise a statement with a bound LIMIT would be planned for each use.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // With a mapped file, each commit of another connection would unmap the whole file, which costs more than the
    // mapping saves.
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// Opens the connection that writes, and runs the migrations on it.
pub(super) fn writing(
    config: &SqliteConfig,
    extra: &[&'static Table],
) -> Result<Connection, StoreError> {
    let connection = connect_to_write(config).map_err(statement_error)?;
    migrate(connection, &config.migrations, extra)
}

fn connect_to_write(config: &SqliteConfig) -> Result<Connection, rusqlite::Error> {
    let connection = connect(config, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", synchronous(config))?;
    connection.pragma_update(None, "cache_size", WRITER_CACHE_SIZE)?;
    // A separate thread makes checkpoints, so no commit waits for one.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(connection)
}

const fn synchronous(config: &SqliteConfig) -> &'static str {
    match config.synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
    }
}

fn migrate(
    mut connection: Connection,
    options: &MigrationOptions,
    extra: &[&'static Table],
) -> Result<Connection, StoreError> {
    if !options.at_open {
        ensure_migrated(&connection)?;
        return Ok(connection);
    }
    let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = begun.map_err(statement_error)?;
    let ran = run_migrations(&transaction, options)?;
    for table in extra {
        let create = ddl::create(table, Dialect::Sqlite, true);
        transaction
            .execute_batch(&create)
            .map_err(statement_error)?;
    }
    transaction.commit().map_err(statement_error)?;
    for migration in ran {
        options.report(&MigrationEvent::Ran(migration.name));
    }
    // Updates the planner's statistics from a sample of the tables.
    connection
        .execute_batch("PRAGMA optimize = 0x10002")
        .map_err(statement_error)?;
    Ok(connection)
}

/// Runs the pending migrations, and returns them.
fn run_migrations(
    connection: &Connection,
    options: &MigrationOptions,
) -> Result<Vec<PendingMigration>, StoreError> {
    let run = |text: &str| connection.execute_batch(text).map_err(statement_error);
    run(migrations::MIGRATIONS_TABLE)?;
    if table_columns(connection).map_err(statement_error)? == 2 {
        migrations::MIGRATIONS_COLUMNS
            .into_iter()
            .try_for_each(run)?;
    }
    let record = |values: [String; 4]| {
        let recorded = connection.execute(migrations::RECORD_MIGRATION, values);
        recorded.map(drop).map_err(statement_error)
    };
    let done = applied_migrations(connection).map_err(statement_error)?;
    let pending = migrations::pending(&done, Dialect::Sqlite).map_err(StoreError::backend)?;
    options
        .ensure_may_run(&done, &pending)
        .map_err(StoreError::backend)?;
    for migration in &pending {
        run(migration.text)?;
        record(migration.record())?;
    }
    if let Some(release) = migrations::release_to_record(&done)
        && pending.is_empty()
    {
        record(release)?;
    }
    Ok(pending)
}

/// Returns the number of columns of the table of migrations; 0 if it does not exist.
fn table_columns(connection: &Connection) -> Result<i64, rusqlite::Error> {
    let count = "SELECT count(*) FROM pragma_table_info('schema_migrations')";
    connection.query_row(count, [], |row| row.get(0))
}

/// Returns the migrations that have run; none in a database without their table.
pub(super) fn applied_migrations(
    connection: &Connection,
) -> Result<Vec<AppliedMigration>, rusqlite::Error> {
    if table_columns(connection)? == 0 {
        return Ok(Vec::new());
    }
    let mut statement = connection.prepare(migrations::MIGRATIONS_DONE)?;
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| {
        let texts = (0..columns).map(|at| row.get::<_, Option<String>>(at));
        let texts = texts.map(|text| text.map(Option::unwrap_or_default));
        texts.collect::<Result<Vec<String>, _>>()
    })?;
    rows.map(|row| row.map(AppliedMigration::from_texts))
        .collect()
}

/// Opens a connection that only reads.
pub(super) fn reading(config: &SqliteConfig) -> Result<Connection, StoreError> {
    let open = || {
        let connection = connect(config, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.pragma_update(None, "cache_size", READER_CACHE_SIZE)?;
        Ok(connection)
    };
    open().map_err(statement_error)
}

/// Checks that the database has all migrations.
///
/// # Errors
/// [`StoreError::Backend`] if the database was created by an older or a newer version.
pub(super) fn ensure_migrated(connection: &Connection) -> Result<(), StoreError> {
    let done = applied_migrations(connection).map_err(statement_error)?;
    migrations::ensure_done(&done, Dialect::Sqlite).map_err(StoreError::backend)
}

/// Opens the connection that copies the write-ahead log into the database file.
pub(super) fn checkpointing(config: &SqliteConfig) -> Result<Connection, StoreError> {
    let open = || {
        let connection = connect(config, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.pragma_update(None, "synchronous", synchronous(config))?;
        Ok(connection)
    };
    open().map_err(statement_error)
}
