//! The engine on SQLite: one file, one writer, readers that do not wait for it, one process.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::{Clock, StoreError, Timestamp};
use core_domain::port::{Direction, Mode, Store};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Row as _, Sqlite};

use crate::checked_tx::CheckedTx;
use crate::cursor::CursorKey;
use crate::filter::Filter;
use crate::query::Select;
use crate::row_store::{Replacement, RowStore, RowTx};
use crate::sql::ddl::{self, Dialect};
use crate::sql::driver::sql_driver;
use crate::sql::{self, Statement, migrations};
use crate::table::{Table, Type, VERSION};
use crate::unit::RecordStore;
use crate::value::{Row, Value, Visit};

/// `PRAGMA synchronous`: when a commit is flushed to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synchronous {
    /// At once: a commit survives a loss of power.
    Full,
    /// At a checkpoint: a commit survives a crash of the process, but a loss of power may undo the last ones.
    Normal,
}

/// What the SQLite store needs.
#[derive(Clone, Debug)]
pub struct SqliteConfig {
    /// The database file; created if missing, for its owner alone (0600). Beside it are its write-ahead log, the log's
    /// index and a lock file that keeps other processes out, with the same permissions. What exists keeps its own.
    pub path: PathBuf,
    /// Where `now` comes from.
    pub clock: Arc<dyn Clock>,
    /// What cursors are signed with.
    pub cursor_key: CursorKey,
    /// What a commit survives.
    pub synchronous: Synchronous,
    /// How many units can read at once.
    pub readers: u32,
}

impl SqliteConfig {
    /// A durable store in the file.
    pub fn new(
        path: impl Into<PathBuf>,
        clock: Arc<dyn Clock>,
        cursor_key: impl Into<CursorKey>,
    ) -> Self {
        Self {
            path: path.into(),
            clock,
            cursor_key: cursor_key.into(),
            synchronous: Synchronous::Full,
            readers: 4,
        }
    }
}

/// Opens the store and brings its schema up to date.
///
/// # Errors
/// [`StoreError::Unavailable`] when the file cannot be opened or another process has it open;
/// [`StoreError::Backend`] when it was made by a newer version.
pub async fn open(config: SqliteConfig) -> Result<Arc<dyn Store>, StoreError> {
    let cursor_key = config.cursor_key.clone();
    let rows = rows(config, &[]).await?;
    Ok(Arc::new(RecordStore::new(rows, cursor_key)))
}

/// Opens the row engine; the `extra` tables are created if missing.
///
/// # Errors
/// As [`open`].
pub async fn rows(
    config: SqliteConfig,
    extra: &[&'static Table],
) -> Result<Arc<dyn RowStore>, StoreError> {
    let lock = acquire_lock(&config.path)?;
    create_private(&config.path)?;
    let options = SqliteConnectOptions::new()
        .filename(&config.path)
        .busy_timeout(Duration::from_secs(5))
        .foreign_keys(true)
        .statement_cache_capacity(512)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(match config.synchronous {
            Synchronous::Full => SqliteSynchronous::Full,
            Synchronous::Normal => SqliteSynchronous::Normal,
        });
    let writer = SqlitePoolOptions::new()
        // The database is in this process: a connection cannot be lost.
        .test_before_acquire(false)
        .max_connections(1)
        .connect_with(options.clone())
        .await
        .map_err(failure)?;
    let mut transaction = writer.begin_with(WRITE).await.map_err(failure)?;
    migrate(&mut transaction, Dialect::Sqlite, extra).await?;
    transaction.commit().await.map_err(failure)?;
    let readers = SqlitePoolOptions::new()
        // As above.
        .test_before_acquire(false)
        .max_connections(config.readers.max(1))
        .connect_with(options.read_only(true))
        .await
        .map_err(failure)?;
    Ok(Arc::new(SqliteRows {
        writer,
        readers,
        clock: config.clock,
        _lock: lock,
    }))
}

/// Takes the write lock at the start, so that no unit fails at its end because another one was first.
const WRITE: &str = "BEGIN IMMEDIATE";

/// Keeps other processes out for as long as the file handle lives, however this process ends.
fn acquire_lock(path: &Path) -> Result<File, StoreError> {
    let mut lock_path = path.as_os_str().to_owned();
    lock_path.push(".lock");
    let lock = create_private(Path::new(&lock_path))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(StoreError::unavailable(format!(
            "{} is in use by another process",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(StoreError::unavailable(error)),
    }
}

/// Opens the file; creates it for its owner alone, whatever the umask. SQLite gives the files beside a database the
/// permissions of the database itself.
fn create_private(path: &Path) -> Result<File, StoreError> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map_err(|source| {
        let path = path.to_owned();
        StoreError::unavailable(FileError { path, source })
    })
}

/// A file that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
struct FileError {
    path: PathBuf,
    source: std::io::Error,
}

#[derive(Debug)]
struct SqliteRows {
    writer: SqlitePool,
    readers: SqlitePool,
    clock: Arc<dyn Clock>,
    _lock: File,
}

#[async_trait]
impl RowStore for SqliteRows {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        let connection = match mode {
            Mode::Auto => self.readers.acquire().await.map(Connection::Bare),
            Mode::Read => self.readers.begin().await.map(Connection::Transaction),
            Mode::Write | Mode::ReadCommitted => {
                let begun = self.writer.begin_with(WRITE).await;
                begun.map(Connection::Transaction)
            }
        };
        let tx = SqlTx {
            connection: connection.map_err(failure)?,
            clock: Some(self.clock.clone()),
        };
        Ok(CheckedTx::wrap(Box::new(tx), mode))
    }
}

const BUSY: i32 = 5;
const LOCKED: i32 = 6;

fn failure(error: sqlx::Error) -> StoreError {
    match &error {
        sqlx::Error::Database(database) => {
            let code = database.code().and_then(|code| code.parse::<i32>().ok());
            // The low byte is the primary code, the rest says more.
            match code.map(|code| code & 0xff) {
                Some(BUSY | LOCKED) => StoreError::retry(error),
                _ => StoreError::backend(error),
            }
        }
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => {
            StoreError::unavailable(error)
        }
        _ => StoreError::backend(error),
    }
}

/// A commit that met a lock did not happen. One that met an error of the disk may have reached the write-ahead log all
/// the same.
fn commit_failure(error: sqlx::Error) -> StoreError {
    match failure(error) {
        StoreError::Unavailable(cause) | StoreError::Backend(cause) => {
            StoreError::CommitUnknown(cause)
        }
        not_committed => not_committed,
    }
}

sql_driver!(Sqlite, lock: "", now: None, files: |migration| migration.sqlite);
