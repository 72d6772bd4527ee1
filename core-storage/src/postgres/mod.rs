//! The engine on Postgres, for several processes on one database.
//!
//! A unit costs as few round trips as it can: `BEGIN` with the isolation level and the instant of the unit goes with the
//! first query, a batch of rows is one whatever its size, `COMMIT` goes with the rows that waited for it, and nobody waits
//! for the end of a unit that has changed nothing. A connection is neither asked whether it lives before it is used nor
//! after: one that was lost while nobody used it is replaced when the first statement of a unit finds out.
//!
//! No wait is unbounded: opening a connection, acquiring one and every answer have a limit. What a server says that is
//! shutting down or accepts no writes ends the connection and the idle ones; a new one goes to the server that has taken
//! its place. A unit that is dropped during a statement gives its connection back once the statement has ended, and the
//! server is asked to cancel one that takes longer, so there are never more connections than the pool may have.

mod config;
mod connect;
mod connection;
mod error;
mod hints;
mod options;
mod pool;
mod schema;
mod servers;
mod tls;
mod unit;
mod values;

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::kernel::{Clock, StoreError};
use core_domain::port::{Mode, Store};

use crate::checked_tx::CheckedTx;
use crate::row_store::{RowStore, RowTx};
use crate::sql::{Dialect, SqlTx, Texts};
use crate::table::Table;
use crate::unit::RecordStore;

pub use config::{Keepalive, PostgresConfig};
pub use error::PostgresError;
pub use hints::Hints;

use pool::Pool;
use unit::Unit;

/// Opens the store and brings its schema up to date; processes that start together wait for each other.
///
/// # Errors
/// [`StoreError::Unavailable`] when the database cannot be reached; [`StoreError::Backend`] when the address or the name
/// of the schema is not valid or the database was made by a newer version.
pub async fn open(config: PostgresConfig) -> Result<Arc<dyn Store>, StoreError> {
    let (cursor_key, page_bytes) = (config.cursor_key.clone(), config.page_bytes);
    let retry_timeout = config.retry_timeout;
    let rows = rows(config, &[]).await?;
    let store = RecordStore::new(rows, cursor_key).with_page_bytes(page_bytes);
    Ok(Arc::new(store.with_retry_timeout(retry_timeout)))
}

/// Opens the row engine; the `extra` tables are created if missing.
///
/// # Errors
/// As [`open`].
pub async fn rows(
    config: PostgresConfig,
    extra: &[&'static Table],
) -> Result<Arc<dyn RowStore>, StoreError> {
    let pool = Pool::new(&config)?;
    schema::migrate(&pool, config.schema.as_deref(), extra).await?;
    Ok(Arc::new(PostgresRows {
        pool,
        clock: config.clock,
        texts: Arc::default(),
    }))
}

#[derive(Debug)]
struct PostgresRows {
    pool: Arc<Pool>,
    clock: Option<Arc<dyn Clock>>,
    texts: Arc<Texts>,
}

#[async_trait]
impl RowStore for PostgresRows {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        let unit = Unit::begin(&self.pool, mode, self.clock.is_none()).await?;
        let (texts, clock) = (self.texts.clone(), self.clock.clone());
        let tx = SqlTx::new(unit, Dialect::Postgres, texts, clock);
        Ok(CheckedTx::wrap(Box::new(tx), mode))
    }
}
