//! A custom storage engine: the suite's row engine contract on [redb], a key-value store in one file.
//!
//! A table is a map from keys to rows. An index is a map whose keys are the values of the indexed columns followed by
//! the row's key, encoded so that the bytes have the same sort order as the values. One unit of work writes at a time,
//! in a redb transaction; reading units use a snapshot. A commit is durable when the call returns.
//!
//! The engine passes the exported conformance suite (`tests/conformance.rs`), which is the only requirement. To use an
//! engine, wrap it in `core_storage::RecordStore` and set that store on the suite's builder.
//!
//! [redb]: https://docs.rs/redb

mod encoding;
mod maps;
mod query;
mod transaction;
mod unit;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use core_domain::kernel::{Clock, StoreError};
use core_domain::port::Mode;
use core_storage::{CheckedTx, RowStore, RowTx};
use redb::{Database, ReadableDatabase as _};
use tokio::sync::Mutex;

use transaction::Transaction;
use unit::Unit;

/// The engine: one file, used by one process.
pub struct RedbRows {
    database: Arc<Database>,
    /// Held by the writing unit. Units wait for this async lock, because redb would block the thread.
    writing: Arc<Mutex<()>>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for RedbRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RedbRows(..)")
    }
}

/// Opens the file, and creates it if it is missing.
///
/// # Errors
/// [`StoreError::Unavailable`] if the file cannot be opened, or if another process has opened it.
pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Arc<dyn RowStore>, StoreError> {
    let database = Database::create(path).map_err(StoreError::unavailable)?;
    Ok(Arc::new(RedbRows {
        database: Arc::new(database),
        writing: Arc::default(),
        clock,
    }))
}

#[async_trait]
impl RowStore for RedbRows {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        let transaction = match mode {
            Mode::Auto | Mode::Read => {
                let begun = self.database.begin_read();
                Transaction::Read(begun.map_err(StoreError::unavailable)?)
            }
            Mode::Write | Mode::ReadCommitted => {
                let turn = self.writing.clone().lock_owned().await;
                let begun = self.database.begin_write();
                Transaction::Write(Box::new(begun.map_err(StoreError::unavailable)?), turn)
            }
        };
        let unit = Unit::new(transaction, self.clock.clone());
        Ok(CheckedTx::wrap(Box::new(unit), mode))
    }
}
