//! A storage engine of one's own: the row engine contract of the suite on [redb], a key-value store in one file.
//!
//! A table is a map from keys to rows; an index is a map whose keys are the values of its columns, encoded so that their
//! bytes sort as the values do, and the key of the row. One unit writes at a time, in a transaction of redb; units that
//! read have a snapshot. A commit is on the disk when it is answered.
//!
//! The engine passes the exported conformance suite (`tests/conformance.rs`), and that is all there is to show: put it
//! behind `core_storage::RecordStore` and give that to the suite's builder.
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

/// The engine: one file, one process.
pub struct RedbRows {
    database: Arc<Database>,
    /// Who writes; redb would block the thread of everybody else.
    writing: Arc<Mutex<()>>,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for RedbRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RedbRows(..)")
    }
}

/// Opens the file; creates it if missing.
///
/// # Errors
/// [`StoreError::Unavailable`] when it cannot be opened, or another process has it open.
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
