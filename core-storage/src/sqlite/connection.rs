//! The connections: how each is opened, and how the schema is brought up to date.

use std::time::Duration;

use core_domain::kernel::StoreError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::config::{SqliteConfig, Synchronous};
use super::error::failure;

use crate::sql::{Dialect, ddl, migrations};
use crate::table::Table;

/// Prepared statements a connection keeps: more than there are shapes on a hot path.
const STATEMENTS: usize = 512;
/// `PRAGMA cache_size` in KiB, which it takes as a negative number.
const WRITER_CACHE: i64 = -16_384;
const READER_CACHE: i64 = -4_096;
/// Nobody else has the file; only a checkpoint may be in the way for a moment.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

fn connect(config: &SqliteConfig, flags: OpenFlags) -> Result<Connection, rusqlite::Error> {
    // A connection is used by one thread at a time: it needs no lock of its own.
    let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&config.path, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Plans do not depend on what is bound: else a statement with a bound LIMIT is planned anew each time.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Whoever maps the file unmaps all of it after each commit of another connection: that costs more than it saves.
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// The connection that writes, its schema up to date.
pub(super) fn writing(
    config: &SqliteConfig,
    extra: &[&'static Table],
) -> Result<Connection, StoreError> {
    let connection = connect_to_write(config).map_err(failure)?;
    migrate(connection, extra)
}

fn connect_to_write(config: &SqliteConfig) -> Result<Connection, rusqlite::Error> {
    let connection = connect(config, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", synchronous(config))?;
    connection.pragma_update(None, "cache_size", WRITER_CACHE)?;
    // Checkpoints have a thread of their own: no commit waits for one.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(connection)
}

const fn synchronous(config: &SqliteConfig) -> &'static str {
    match config.synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
    }
}

fn migrate(mut connection: Connection, extra: &[&'static Table]) -> Result<Connection, StoreError> {
    let begun = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = begun.map_err(failure)?;
    run_migrations(&transaction, extra)?;
    transaction.commit().map_err(failure)?;
    // What the planner knows of the tables, as far as a look at a part of them tells.
    connection
        .execute_batch("PRAGMA optimize = 0x10002")
        .map_err(failure)?;
    Ok(connection)
}

fn run_migrations(connection: &Connection, extra: &[&'static Table]) -> Result<(), StoreError> {
    let run = |text: &str| connection.execute_batch(text).map_err(failure);
    run(migrations::MIGRATIONS_TABLE)?;
    let done = done(connection).map_err(failure)?;
    for migration in migrations::pending(&done, Dialect::Sqlite)? {
        run(migration.text)?;
        let noted = [migration.name, &migration.checksum];
        connection
            .execute(migrations::NOTE_MIGRATION, noted)
            .map_err(failure)?;
    }
    for table in extra {
        run(&ddl::create(table, Dialect::Sqlite, true))?;
    }
    Ok(())
}

fn done(connection: &Connection) -> Result<Vec<(String, String)>, rusqlite::Error> {
    let mut statement = connection.prepare(migrations::MIGRATIONS_DONE)?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// A connection that only reads.
pub(super) fn reading(config: &SqliteConfig) -> Result<Connection, StoreError> {
    let open = || {
        let connection = connect(config, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.pragma_update(None, "cache_size", READER_CACHE)?;
        Ok(connection)
    };
    open().map_err(failure)
}

/// The connection that copies the write-ahead log into the database.
pub(super) fn checkpointing(config: &SqliteConfig) -> Result<Connection, StoreError> {
    let open = || {
        let connection = connect(config, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        connection.pragma_update(None, "synchronous", synchronous(config))?;
        Ok(connection)
    };
    open().map_err(failure)
}
