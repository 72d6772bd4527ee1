//! The engine on SQLite: one file, one process, one writer, and readers that do not wait for the writer. Other processes can
//! only read; see [`open_read_only`].
//!
//! Reads of a row or a page and changes of one row run on the calling thread. They take less time than a switch to
//! another thread and back (5-10 µs). Counts, sums, walks, lists without a limit and changes of any number of rows run
//! on a blocking thread. Commits, which wait for the disk, run on a dedicated thread.
//!
//! Reads use one of the reading connections. In [`Mode::Auto`] they use no transaction. In [`Mode::Read`] they use a
//! deferred transaction, which is a snapshot from its first read.
//!
//! Writers take turns on one connection, and their commits are grouped: see `writer.rs`.

mod checkpoint;
mod commits;
mod config;
mod connection;
mod error;
mod files;
mod host;
mod online_backup;
mod read_only;
mod readers;
mod run;
mod writer;

use std::fs::File;
use std::sync::Arc;

use async_trait::async_trait;
use core_domain::kernel::{Clock, StoreError};
use core_domain::port::{Mode, PoolState, Store};

use crate::cells::{HOME_NAME, ensure_names_cover};
use crate::checked_tx::CheckedTx;
use crate::row_store::{RowStore, RowTx};
use crate::sql::{Dialect, SqlTx, StatementCache};
use crate::table::Table;
use crate::unit::RecordStore;

pub use config::{SqliteConfig, Synchronous};
pub use host::enlist;
pub use online_backup::back_up;
pub use read_only::{open_read_only, plan_migrations, rows_read_only};
// The driver, whose connection `enlist` passes to the host program.
pub use rusqlite;

use commits::Commits;
use readers::Readers;
use writer::Writer;

/// Opens the store and runs pending migrations.
///
/// # Errors
/// [`StoreError::Unavailable`] if the file cannot be opened or another process has opened it. [`StoreError::Backend`]
/// if a newer version created the database.
pub async fn open(config: SqliteConfig) -> Result<Arc<dyn Store>, StoreError> {
    let (cursor_key, page_bytes) = (config.cursor_key.clone(), config.page_bytes);
    let rows = rows(config, &[]).await?;
    ensure_names_cover(rows.as_ref(), &[HOME_NAME]).await?;
    let store = RecordStore::new(rows, cursor_key);
    Ok(Arc::new(store.with_page_bytes(page_bytes)))
}

/// Opens the row engine. The `extra` tables are created if they are missing.
///
/// # Errors
/// See [`open`].
pub async fn rows(
    config: SqliteConfig,
    extra: &[&'static Table],
) -> Result<Arc<dyn RowStore>, StoreError> {
    let extra = extra.to_vec();
    let opened = tokio::task::spawn_blocking(move || SqliteRows::open(&config, &extra));
    let rows = opened.await.map_err(StoreError::unavailable)??;
    Ok(Arc::new(rows))
}

#[derive(Debug)]
struct SqliteRows {
    // Fields are dropped in this order: readers, the writer and its threads, then the lock.
    readers: Arc<Readers>,
    writer: Arc<Writer>,
    clock: Arc<dyn Clock>,
    texts: Arc<StatementCache>,
    _lock: File,
}

impl SqliteRows {
    fn open(config: &SqliteConfig, extra: &[&'static Table]) -> Result<Self, StoreError> {
        let lock = files::acquire_lock(&config.path)?;
        files::create_private(&config.path)?;
        let writing = connection::writing(config, extra)?;
        let checkpointing = connection::checkpointing(config)?;
        let commits = Arc::new(Commits::default());
        Ok(Self {
            readers: Readers::open(config, Some(commits.clone()))?,
            writer: Writer::new(writing, checkpointing, commits, config.acquire_timeout)?,
            clock: config.clock.clone(),
            texts: Arc::default(),
            _lock: lock,
        })
    }
}

#[async_trait]
impl RowStore for SqliteRows {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        let (dialect, texts) = (Dialect::Sqlite, self.texts.clone());
        let clock = Some(self.clock.clone());
        let tx: Box<dyn RowTx> = match mode {
            Mode::Auto | Mode::Read => {
                let reader = self.readers.begin(mode == Mode::Read).await?;
                Box::new(SqlTx::new(reader, dialect, texts, clock))
            }
            Mode::Write | Mode::ReadCommitted => {
                let turn = self.writer.begin().await?;
                Box::new(SqlTx::new(turn, dialect, texts, clock))
            }
        };
        Ok(CheckedTx::wrap(tx, mode))
    }

    fn pools(&self) -> Vec<PoolState> {
        vec![self.readers.state(), self.writer.state()]
    }
}
