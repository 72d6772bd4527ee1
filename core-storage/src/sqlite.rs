//! The engine on SQLite: one file, one writer, readers that do not wait for it, one process.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::{Clock, Timestamp};
use core_domain::port::{Direction, Mode, Store, StoreError};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Row as _, Sqlite};

use crate::cursor::CursorKey;
use crate::filter::Filter;
use crate::guarded::Guarded;
use crate::query::Select;
use crate::row_store::{RowStore, RowTx};
use crate::sql::ddl::{self, Dialect};
use crate::sql::driver::sql_driver;
use crate::sql::{self, Statement, migrations};
use crate::table::{Table, Type};
use crate::unit::RecordStore;
use crate::value::{Row, Value};

/// What the SQLite store needs.
#[derive(Clone, Debug)]
pub struct SqliteConfig {
    /// The database file; made if missing. Beside it lie its log and a lock file that keeps other processes out.
    pub path: PathBuf,
    /// Where `now` comes from.
    pub clock: Arc<dyn Clock>,
    /// What cursors are sealed with.
    pub cursor_key: CursorKey,
    /// Whether a commit survives a power cut (`synchronous=FULL`). Without it one survives a crash of the process only.
    pub survive_power_cut: bool,
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
            survive_power_cut: true,
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

/// Opens the row engine; tables of your own are made if missing.
///
/// # Errors
/// As [`open`].
pub async fn rows(
    config: SqliteConfig,
    extra: &[&'static Table],
) -> Result<Arc<dyn RowStore>, StoreError> {
    let owner = own(&config.path)?;
    let options = SqliteConnectOptions::new()
        .filename(&config.path)
        .busy_timeout(Duration::from_secs(5))
        .foreign_keys(true)
        .statement_cache_capacity(512)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(if config.survive_power_cut {
            SqliteSynchronous::Full
        } else {
            SqliteSynchronous::Normal
        });
    let writer = SqlitePoolOptions::new()
        // The database is in this process: there is no connection that could have broken meanwhile.
        .test_before_acquire(false)
        .max_connections(1)
        .connect_with(options.clone().create_if_missing(true))
        .await
        .map_err(failure)?;
    let mut transaction = writer.begin_with(WRITE).await.map_err(failure)?;
    migrate(&mut transaction, Dialect::Sqlite, extra).await?;
    transaction.commit().await.map_err(failure)?;
    let readers = SqlitePoolOptions::new()
        // The database is in this process: there is no connection that could have broken meanwhile.
        .test_before_acquire(false)
        .max_connections(config.readers.max(1))
        .connect_with(options.read_only(true))
        .await
        .map_err(failure)?;
    Ok(Arc::new(SqliteRows {
        writer,
        readers,
        clock: config.clock,
        _owner: owner,
    }))
}

/// Takes the write lock at once, so that no unit finds out at its end that another one was first.
const WRITE: &str = "BEGIN IMMEDIATE";

/// Keeps other processes out for as long as the file handle lives, however this process ends.
fn own(path: &Path) -> Result<File, StoreError> {
    let mut lock = path.as_os_str().to_owned();
    lock.push(".lock");
    let said = |error: std::io::Error| {
        StoreError::Unavailable(format!("{}: {error}", Path::new(&lock).display()))
    };
    let file = File::options()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&lock)
        .map_err(said)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(StoreError::Unavailable(format!(
            "{} is in use by another process",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(said(error)),
    }
}

#[derive(Debug)]
struct SqliteRows {
    writer: SqlitePool,
    readers: SqlitePool,
    clock: Arc<dyn Clock>,
    _owner: File,
}

#[async_trait]
impl RowStore for SqliteRows {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        let connection = match mode {
            Mode::Auto => self.readers.acquire().await.map(Connection::Bare),
            Mode::Read => self.readers.begin().await.map(Connection::Transaction),
            Mode::Write => {
                let begun = self.writer.begin_with(WRITE).await;
                begun.map(Connection::Transaction)
            }
        };
        let tx = SqlTx {
            connection: connection.map_err(failure)?,
            clock: Some(self.clock.clone()),
        };
        Ok(Guarded::wrap(Box::new(tx), mode))
    }
}

const BUSY: i32 = 5;
const LOCKED: i32 = 6;

fn failure(error: sqlx::Error) -> StoreError {
    let said = error.to_string();
    match &error {
        sqlx::Error::Database(database) => {
            let code = database.code().and_then(|code| code.parse::<i32>().ok());
            // The low byte is the primary code, the rest says more.
            match code.map(|code| code & 0xff) {
                Some(BUSY | LOCKED) => StoreError::Retry(said),
                _ => StoreError::Backend(said),
            }
        }
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed => {
            StoreError::Unavailable(said)
        }
        _ => StoreError::Backend(said),
    }
}

sql_driver!(Sqlite, lock: "", now: None, files: |migration| migration.sqlite);
