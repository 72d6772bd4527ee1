//! Reads a database that another process may have opened.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::kernel::{Clock, StoreError};
use core_domain::port::{Mode, PoolState, Store};

use super::config::SqliteConfig;
use super::connection;
use super::error::statement_error;
use super::readers::Readers;
use crate::checked_tx::CheckedTx;
use crate::read_only::ensure_read;
use crate::row_store::{RowStore, RowTx};
use crate::sql::migration_plan::MigrationPlan;
use crate::sql::{Dialect, SqlTx, StatementCache};
use crate::unit::RecordStore;

/// Opens an existing database for reading, also while another process has opened it for writing. Units that write are
/// refused, and migrations are not run. A read unit keeps the write-ahead log from restarting, so keep read units short
/// while a server is running.
///
/// # Errors
/// [`StoreError::Unavailable`] if there is no such file. [`StoreError::Backend`] if an older or a newer version created
/// the database.
pub async fn open_read_only(config: SqliteConfig) -> Result<Arc<dyn Store>, StoreError> {
    let (cursor_key, page_bytes) = (config.cursor_key.clone(), config.page_bytes);
    let store = RecordStore::new(rows_read_only(config).await?, cursor_key);
    Ok(Arc::new(store.with_page_bytes(page_bytes)))
}

/// Opens the row engine of an existing database for reading.
///
/// # Errors
/// See [`open_read_only`].
pub async fn rows_read_only(config: SqliteConfig) -> Result<Arc<dyn RowStore>, StoreError> {
    let opened = tokio::task::spawn_blocking(move || ReadOnlyRows::open(&config));
    let rows = opened.await.map_err(StoreError::unavailable)??;
    Ok(Arc::new(rows))
}

/// Returns the migrations that have not run on a database, which is only read. A file that does not exist has none.
///
/// # Errors
/// [`StoreError::Unavailable`] if the file cannot be read. [`StoreError::Backend`] if this program cannot use the
/// database.
pub async fn plan_migrations(config: SqliteConfig) -> Result<MigrationPlan, StoreError> {
    let planned = tokio::task::spawn_blocking(move || {
        let mut done = Vec::new();
        if config.path.try_exists().map_err(StoreError::unavailable)? {
            let connection = connection::reading(&config)?;
            let applied = connection::applied_migrations(&connection);
            done = applied.map_err(statement_error)?;
        }
        MigrationPlan::of(&done, Dialect::Sqlite, Vec::new()).map_err(StoreError::backend)
    });
    planned.await.map_err(StoreError::unavailable)?
}

#[derive(Debug)]
struct ReadOnlyRows {
    readers: Arc<Readers>,
    clock: Arc<dyn Clock>,
    texts: Arc<StatementCache>,
}

impl ReadOnlyRows {
    fn open(config: &SqliteConfig) -> Result<Self, StoreError> {
        if !config.path.try_exists().map_err(StoreError::unavailable)? {
            let path = config.path.display();
            return Err(StoreError::unavailable(format!("{path} does not exist")));
        }
        connection::ensure_migrated(&connection::reading(config)?)?;
        Ok(Self {
            readers: Readers::open(config, None)?,
            clock: config.clock.clone(),
            texts: Arc::default(),
        })
    }
}

#[async_trait]
impl RowStore for ReadOnlyRows {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        ensure_read(mode)?;
        let reader = self.readers.begin(mode == Mode::Read).await?;
        let clock = Some(self.clock.clone());
        let tx = SqlTx::new(reader, Dialect::Sqlite, self.texts.clone(), clock);
        Ok(CheckedTx::wrap(Box::new(tx), mode))
    }

    fn pools(&self) -> Vec<PoolState> {
        vec![self.readers.state()]
    }
}
