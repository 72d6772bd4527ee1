//! The Postgres store of the Platform Control API Suite on an [`sqlx::PgPool`] that the host program owns.
//!
//! The suite uses the connections of the pool, with the TLS, the credentials and the limits that the host program has
//! chosen. It changes no setting of a session: its settings apply to its own transactions only.
//!
//! ```no_run
//! # async fn open() -> Result<(), Box<dyn std::error::Error>> {
//! use core_sqlx::SqlxConfig;
//! use sqlx::postgres::PgPoolOptions;
//!
//! let pool = PgPoolOptions::new().max_connections(16).connect("postgres://localhost/app").await?;
//! let mut config = SqlxConfig::new(pool, [7; 32]);
//! config.schema = Some("core_suite".to_owned()); // keeps the tables of the suite apart from those of the host program
//! let store = core_sqlx::open(config).await?;
//! # drop(store);
//! # Ok(()) }
//! ```
//!
//! # The pool
//! - **TLS.** The crate enables no TLS feature of sqlx. A host program that needs TLS enables one, for example
//!   `tls-rustls-ring-native-roots`.
//! - **Size.** A request uses one connection at a time. The worker uses one for each job that runs. A pool that the host
//!   program also uses needs room for both.
//! - **Statement cache.** The suite has several hundred different statements. Set `statement_cache_capacity(1024)` on the
//!   `PgConnectOptions`; with the default of 100 they are prepared again and again.
//! - **Schemas.** A database of an early server stores ids as text, a new one stores them as UUIDs. The driver keeps prepared
//!   statements by their text, so two schemas that differ in this need two pools.
//! - **Tests of connections.** `test_before_acquire(false)` saves a round trip for each unit of work. A connection that
//!   was lost while idle is detected by the first statement and replaced.
//! - **Proxies.** A proxy that assigns a connection to each transaction (PgBouncer in transaction mode) must support
//!   prepared statements. Hints and notices do not arrive through it; workers then poll, and caches expire.
//!
//! # Cancellation
//! A unit of work can be dropped at any point. Its connection returns to the pool only after its transaction is rolled
//! back. A statement that is still running is cancelled with `pg_cancel_backend` over an additional connection, and its
//! connection is closed. Until then the connection counts against the limit of the pool.
//!
//! # Tables of the host program
//! [`enlist`] runs statements of the host program in the transaction of a unit of work.
//!
//! # Differences from the engine on tokio-postgres
//! Both engines use the same tables, statements and isolation levels, so a database can change from one to the other.
//! - The server's settings are sent with the start of each transaction, not once for each connection. A read of one row
//!   or one page has no transaction, so the timeouts of the session apply to it.
//! - A statement is cancelled by SQL over an additional connection, because the driver has no cancel request. The role
//!   needs no permission for that, because both connections have the same role.
//! - Timeouts for TCP and for opening connections are those of the pool. The pool of sqlx does not limit how long a
//!   lost network connection stays unnoticed; [`SqlxConfig::answer_margin`] does.

mod config;
mod enlist;
mod error;
mod hints;
mod lease;
mod listener;
mod notices;
mod schema;
mod unit;
mod values;

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::kernel::{Clock, StoreError};
use core_domain::port::{Mode, PoolState, Store};
use core_storage::sql::migration_plan::MigrationPlan;
use core_storage::sql::{Dialect, SqlTx, StatementCache};
use core_storage::{CheckedTx, RecordStore, RowStore, RowTx, Table};

pub use config::SqlxConfig;
pub use enlist::{HostWork, enlist};
pub use hints::Hints;
pub use notices::PoolNotices;
// The version of sqlx whose pool the store accepts.
pub use sqlx;

use unit::{StoreInner, Unit};

/// Opens the store and runs pending migrations. Processes that start at the same time wait for each other.
///
/// # Errors
/// [`StoreError::Unavailable`] if the database cannot be reached. [`StoreError::Backend`] if the name of the schema is
/// invalid, or if a newer version created the database.
pub async fn open(config: SqlxConfig) -> Result<Arc<dyn Store>, StoreError> {
    let (cursor_key, page_bytes) = (config.cursor_key.clone(), config.page_bytes);
    let retry_timeout = config.retry_timeout;
    let rows = rows(config, &[]).await?;
    let store = RecordStore::new(rows, cursor_key).with_page_bytes(page_bytes);
    Ok(Arc::new(store.with_retry_timeout(retry_timeout)))
}

/// Returns the migrations that have not run on the database, which is only read. Sizes of tables are not read.
///
/// # Errors
/// See [`open`].
pub async fn plan_migrations(config: SqlxConfig) -> Result<MigrationPlan, StoreError> {
    schema::plan(&config).await
}

/// Opens the row engine. The `extra` tables are created if they are missing.
///
/// # Errors
/// See [`open`].
pub async fn rows(
    config: SqlxConfig,
    extra: &[&'static Table],
) -> Result<Arc<dyn RowStore>, StoreError> {
    let texts = schema::migrate(&config, extra).await?;
    Ok(Arc::new(SqlxRows {
        shared: Arc::new(StoreInner::new(&config)),
        clock: config.clock,
        texts: Arc::new(texts),
    }))
}

#[derive(Debug)]
struct SqlxRows {
    shared: Arc<StoreInner>,
    clock: Option<Arc<dyn Clock>>,
    texts: Arc<StatementCache>,
}

#[async_trait]
impl RowStore for SqlxRows {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        let unit = Unit::begin(&self.shared, mode).await?;
        let (texts, clock) = (self.texts.clone(), self.clock.clone());
        let tx = SqlTx::new(unit, Dialect::Postgres, texts, clock);
        Ok(CheckedTx::wrap(Box::new(tx), mode))
    }

    /// Returns the use of the host program's pool, which includes its own connections.
    fn pools(&self) -> Vec<PoolState> {
        let pool = &self.shared.pool;
        let idle = u64::try_from(pool.num_idle()).unwrap_or(u64::MAX);
        vec![PoolState {
            name: "sqlx",
            limit: u64::from(pool.options().get_max_connections()),
            in_use: Some(u64::from(pool.size()).saturating_sub(idle)),
            idle: Some(idle),
            // The pool does not report it.
            waiting: None,
        }]
    }
}
