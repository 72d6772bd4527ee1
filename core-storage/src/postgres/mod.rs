//! The engine on Postgres, for several processes on one database.
//!
//! A unit takes as few round trips as possible. `BEGIN`, with the isolation level and the time of the unit, is sent
//! with the first query. A batch of rows is one statement, whatever its size. `COMMIT` is sent with the rows that are
//! still queued, and the end of a unit that changed nothing is not awaited. Connections are not tested before or after
//! use. The first statement of a unit detects a connection that was lost while idle, and replaces it.
//!
//! With a [direct address](PostgresConfig::direct_url), the URL may lead to a pooler that assigns a server connection to
//! each transaction (PgBouncer in transaction mode). The settings of the store are then part of the statement that opens a
//! unit, single reads run in a transaction, and statements are not prepared. Work that needs a session uses the direct
//! address. A pooler is not detected, because work that needs a session would silently fail behind it. A store without a
//! direct address refuses to open if its server refuses or ignores the settings of the session, as PgBouncer does.
//!
//! No wait is unbounded: opening a connection, acquiring one and every reply have a limit. If the server reports that
//! it is shutting down or accepts no writes, its connection and the idle ones are closed. New connections go to the
//! server that has taken over. A unit that is dropped during a statement returns its connection once the statement has
//! ended. If the statement takes longer, the server is asked to cancel it. There are never more connections than the
//! pool allows.
//!
//! [Prepared transactions](crate::RowTx::prepare) are read and ended on up to four more connections, see `prepared`.

mod channel;
mod config;
mod connect;
mod connection;
mod error;
mod hints;
mod notices;
mod openings;
mod options;
mod pool;
mod position;
mod prepared;
mod replica;
mod schema;
mod servers;
mod tls;
mod unit;
mod values;

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::kernel::{Clock, StoreError};
use core_domain::port::{Mode, PoolState, Store};

use crate::cells::{HOME_NAME, ensure_names_cover};
use crate::checked_tx::CheckedTx;
use crate::read_only::ensure_read;
use crate::row_store::{PreparedUnit, RowStore, RowTx, UnitEnd};
use crate::sql::migration_plan::MigrationPlan;
use crate::sql::{Dialect, SqlTx, StatementCache};
use crate::table::Table;
use crate::unit::RecordStore;

pub use config::{Keepalive, PostgresConfig, ReplicaConfig};
pub use error::PoolerError;
pub use hints::Hints;
pub use notices::PostgresNotices;
pub use replica::measure_replica_lag;

pub use crate::sql::postgres::PostgresError;

use pool::Pool;
use replica::Replica;
use unit::PostgresTx;

/// Opens the store and runs pending migrations. Processes that start at the same time wait for each other.
///
/// # Errors
/// [`StoreError::Unavailable`] if the database cannot be reached. [`StoreError::Backend`] if the URL or the name of the
/// schema is invalid, if a newer version created the database, or with a [`PoolerError`].
pub async fn open(config: PostgresConfig) -> Result<Arc<dyn Store>, StoreError> {
    let (cursor_key, page_bytes) = (config.cursor_key.clone(), config.page_bytes);
    let retry_timeout = config.retry_timeout;
    let rows = rows(config, &[]).await?;
    ensure_names_cover(rows.as_ref(), &[HOME_NAME]).await?;
    let store = RecordStore::new(rows, cursor_key).with_page_bytes(page_bytes);
    Ok(Arc::new(store.with_retry_timeout(retry_timeout)))
}

/// Opens an existing database for reading. Units that write are refused, and migrations are not run.
///
/// # Errors
/// [`StoreError::Unavailable`] if the database cannot be reached. [`StoreError::Backend`] if the URL or the name of the
/// schema is invalid, or if an older or a newer version created the database.
pub async fn open_read_only(config: PostgresConfig) -> Result<Arc<dyn Store>, StoreError> {
    let (cursor_key, page_bytes) = (config.cursor_key.clone(), config.page_bytes);
    let pool = Pool::new(&config)?;
    let rows = read_only_rows(pool, config).await?;
    let store = RecordStore::new(rows, cursor_key);
    Ok(Arc::new(store.with_page_bytes(page_bytes)))
}

/// Returns the migrations that have not run on a database, which is only read.
///
/// # Errors
/// [`StoreError::Unavailable`] if the database cannot be reached. [`StoreError::Backend`] if the URL or the name of the
/// schema is invalid, or if this program cannot use the database.
pub async fn plan_migrations(config: PostgresConfig) -> Result<MigrationPlan, StoreError> {
    schema::plan(&Pool::direct(&config)?).await
}

/// Opens the row engine of an existing database for reading, at its [direct address](PostgresConfig::direct_url). A
/// backup reads all rows in one transaction, which should not occupy a connection of a pooler.
///
/// # Errors
/// See [`open_read_only`].
pub async fn rows_read_only(config: PostgresConfig) -> Result<Arc<dyn RowStore>, StoreError> {
    let pool = Pool::direct(&config)?;
    read_only_rows(pool, config).await
}

/// Returns a pool for work that needs a session: that of the units, unless it is pooled.
fn session_pool(pool: &Arc<Pool>, config: &PostgresConfig) -> Result<Arc<Pool>, StoreError> {
    match pool.options.is_pooled {
        true => Pool::direct(config),
        false => Ok(pool.clone()),
    }
}

async fn read_only_rows(
    pool: Arc<Pool>,
    config: PostgresConfig,
) -> Result<Arc<dyn RowStore>, StoreError> {
    schema::ensure_settings(&pool).await?;
    let sessions = session_pool(&pool, &config)?;
    schema::ensure_migrated(&sessions).await?;
    Ok(Arc::new(PostgresRows {
        pool,
        prepared: Pool::for_prepared_units(&config)?,
        replica: None,
        clock: config.clock,
        texts: schema::statements(&sessions).await?,
        is_read_only: true,
    }))
}

/// Opens the row engine. The `extra` tables are created if they are missing.
///
/// # Errors
/// See [`open`].
pub async fn rows(
    config: PostgresConfig,
    extra: &[&'static Table],
) -> Result<Arc<dyn RowStore>, StoreError> {
    let pool = Pool::new(&config)?;
    schema::ensure_settings(&pool).await?;
    let sessions = session_pool(&pool, &config)?;
    schema::migrate(&sessions, &config, extra).await?;
    let replica = config.replica.as_ref();
    let replica = replica.map(|replica| Replica::start(&pool, replica, &config));
    Ok(Arc::new(PostgresRows {
        pool,
        prepared: Pool::for_prepared_units(&config)?,
        replica: replica.transpose()?,
        clock: config.clock,
        texts: schema::statements(&sessions).await?,
        is_read_only: false,
    }))
}

#[derive(Debug)]
struct PostgresRows {
    pool: Arc<Pool>,
    /// The connections for prepared transactions.
    prepared: Arc<Pool>,
    replica: Option<Replica>,
    clock: Option<Arc<dyn Clock>>,
    texts: Arc<StatementCache>,
    is_read_only: bool,
}

impl PostgresRows {
    fn wrap(&self, unit: PostgresTx, mode: Mode) -> Box<dyn RowTx> {
        let (texts, clock) = (self.texts.clone(), self.clock.clone());
        let tx = SqlTx::new(unit, Dialect::Postgres, texts, clock);
        CheckedTx::wrap(Box::new(tx), mode)
    }
}

#[async_trait]
impl RowStore for PostgresRows {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        if self.is_read_only {
            ensure_read(mode)?;
        }
        let opening = self.pool.openings.of(mode, self.clock.is_none());
        let unit = PostgresTx::begin(&self.pool, mode, opening).await?;
        Ok(self.wrap(unit, mode))
    }

    fn has_gate(&self) -> bool {
        true
    }

    async fn begin_gated(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        if self.is_read_only {
            ensure_read(mode)?;
        }
        let opening = self.pool.openings.of_gated(mode, self.clock.is_none());
        let unit = PostgresTx::begin(&self.pool, mode, opening).await?;
        Ok(self.wrap(unit, mode))
    }

    async fn begin_stale(&self) -> Option<Box<dyn RowTx>> {
        let unit = self.replica.as_ref()?.begin().await?;
        Some(self.wrap(unit, Mode::Read))
    }

    async fn prepared_units(&self, prefix: &str) -> Result<Vec<PreparedUnit>, StoreError> {
        prepared::units(&self.prepared, prefix).await
    }

    async fn end_prepared(&self, name: &str, end: UnitEnd) -> Result<(), StoreError> {
        prepared::end(&self.prepared, name, end).await
    }

    fn pools(&self) -> Vec<PoolState> {
        let replica = self.replica.as_ref().map(Replica::state);
        std::iter::once(self.pool.state()).chain(replica).collect()
    }
}
