//! Opens the store that was chosen.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Clock, Entropy, ProcessName, Secret, StoreError, duration_text};
use core_domain::port::{Notices, Store};
use core_http::gateway::ConfigError;
use core_storage::RowStore;
use core_storage::cells::{CellConfig, CellRows, HOME_NAME};
use core_storage::sql::migration_plan::MigrationPlan;
use core_storage::sql::migrations::MigrationOptions;
use core_storage::{CursorKey, DEFAULT_PAGE_BYTES, RecordStore, memory};
use serde::{Deserialize, Serialize};

use crate::cells::{CellOptions, Cells};
use crate::late_rows::LateRows;
use crate::worker::WorkerWake;
use crate::{SuiteError, SystemClock};

/// Connections and time-outs of the store, and the size of its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PoolOptions {
    /// Maximum number of connections to Postgres. Default: 16.
    pub postgres_connections: u32,
    /// Maximum number of concurrent read units of work on SQLite. Default: 4.
    pub sqlite_readers: u32,
    /// The time that a unit waits for its turn to write to SQLite, or for a connection to read from it. Default: 10 s.
    #[serde(with = "duration_text")]
    pub sqlite_acquire_timeout: Duration,
    /// The time after which an unlimited read from SQLite is interrupted, such as a count or a walk. Default: 20 s.
    #[serde(with = "duration_text")]
    pub sqlite_read_timeout: Duration,
    /// How long a unit of work waits for a connection to Postgres. Default: 10 s, which is less than a request's
    /// time-out.
    #[serde(with = "duration_text")]
    pub postgres_acquire_timeout: Duration,
    /// Maximum time to open a connection to one address of one Postgres host; then the next one is tried. Default: 3 s.
    /// A `connect_timeout` in the URL takes precedence.
    #[serde(with = "duration_text")]
    pub postgres_connect_timeout: Duration,
    /// How long bytes sent to Postgres may stay unacknowledged before the connection is closed (`TCP_USER_TIMEOUT`).
    /// Default: 10 s. A `tcp_user_timeout` in the URL takes precedence.
    #[serde(with = "duration_text")]
    pub postgres_tcp_user_timeout: Duration,
    /// How long a connection to Postgres is silent before the system probes it. Default: 10 s. A `keepalives_idle` in
    /// the URL takes precedence.
    #[serde(with = "duration_text")]
    pub postgres_keepalive_idle: Duration,
    /// The time between these probes. Default: 5 s. A `keepalives_interval` in the URL takes precedence.
    #[serde(with = "duration_text")]
    pub postgres_keepalive_interval: Duration,
    /// The number of unanswered probes after which the connection is closed. Default: 3. A `keepalives_retries` in the
    /// URL takes precedence over it.
    pub postgres_keepalive_count: u32,
    /// How long a connection to Postgres may stay unused before it is closed. Default: 10 min.
    #[serde(with = "duration_text")]
    pub postgres_max_idle: Duration,
    /// The interval at which Postgres checks during a statement whether this process is still connected
    /// (`client_connection_check_interval`). With 0 the server's own setting applies, which versions before 14 require.
    /// Default: 1 s.
    #[serde(with = "duration_text")]
    pub postgres_client_check_interval: Duration,
    /// How long to wait for a response of Postgres after the statement time-out, before the connection is closed.
    /// Default: 5 s.
    #[serde(with = "duration_text")]
    pub postgres_answer_margin: Duration,
    /// How long a unit of work that conflicts with others on Postgres is retried, counted from its first run. Default:
    /// 10 s.
    #[serde(with = "duration_text")]
    pub postgres_retry_timeout: Duration,
    /// The maximum age of a commit that a list from a replica may lack. If the replica is further behind, or cannot be
    /// reached, the primary is read. Without a replica it has no effect. Default: 2 s.
    #[serde(with = "duration_text")]
    pub postgres_max_staleness: Duration,
    /// Maximum duration of a statement on Postgres; 0 means no limit. Default: 20 s.
    #[serde(with = "duration_text")]
    pub postgres_statement_timeout: Duration,
    /// Maximum time that a statement on Postgres waits for a lock; 0 means no limit. Default: 5 s.
    #[serde(with = "duration_text")]
    pub postgres_lock_timeout: Duration,
    /// How long a transaction may be idle before Postgres aborts it; 0 means no limit. Default: 30 s.
    #[serde(with = "duration_text")]
    pub postgres_idle_timeout: Duration,
    /// The byte budget of one page of a list, on every store. A page that reaches it has fewer items than requested,
    /// and a cursor. Default: 1 MiB.
    pub page_bytes: usize,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            postgres_connections: 16,
            sqlite_readers: 4,
            sqlite_acquire_timeout: Duration::from_secs(10),
            sqlite_read_timeout: Duration::from_secs(20),
            postgres_acquire_timeout: Duration::from_secs(10),
            postgres_connect_timeout: Duration::from_secs(3),
            postgres_tcp_user_timeout: Duration::from_secs(10),
            postgres_keepalive_idle: Duration::from_secs(10),
            postgres_keepalive_interval: Duration::from_secs(5),
            postgres_keepalive_count: 3,
            postgres_max_idle: Duration::from_secs(10 * 60),
            postgres_client_check_interval: Duration::from_secs(1),
            postgres_answer_margin: Duration::from_secs(5),
            postgres_retry_timeout: Duration::from_secs(10),
            postgres_max_staleness: Duration::from_secs(2),
            postgres_statement_timeout: Duration::from_secs(20),
            postgres_lock_timeout: Duration::from_secs(5),
            postgres_idle_timeout: Duration::from_secs(30),
            page_bytes: DEFAULT_PAGE_BYTES,
        }
    }
}

/// The Postgres schema of the records, and the certificates that the server is verified with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PostgresOptions {
    /// The schema of the tables: lower-case letters, digits and `_`. It is created if missing. A separate schema lets
    /// the suite share a database with other tables. Default: the schema of the connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// A PEM file with the root certificates for the server's certificate, used if the URL has `sslmode=verify-ca` or
    /// `sslmode=verify-full`. Default: the system's root certificates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_certificates: Option<PathBuf>,
}

/// Options to open a store with.
#[derive(Clone, Debug)]
pub(crate) struct OpenOptions {
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) cursor_key: CursorKey,
    pub(crate) pool: PoolOptions,
    #[cfg_attr(
        not(any(feature = "postgres", feature = "sqlx")),
        expect(dead_code, reason = "only the Postgres stores use them")
    )]
    pub(crate) postgres: PostgresOptions,
    /// The address of standbys for lists that may be stale; `None` if all lists read the primary.
    pub(crate) replica_url: Option<Secret>,
    pub(crate) migrations: MigrationOptions,
    /// The cells beside the database that was chosen, which is home.
    pub(crate) cells: Cells,
    /// The source of the names that cells need.
    pub(crate) entropy: Arc<dyn Entropy>,
}

impl OpenOptions {
    fn clock_or_system(&self) -> Arc<dyn Clock> {
        let clock = self.clock.clone();
        clock.unwrap_or_else(|| Arc::new(SystemClock))
    }
}

/// What a database is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Units of work, through the pooler if there is one.
    Units,
    /// Long units of work, at the direct address.
    Direct,
    /// Reading, while another process may use the database.
    ReadOnly,
}

/// The addresses of a Postgres database. They may contain a password.
#[derive(Clone)]
pub(crate) struct PostgresUrls {
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "only the Postgres store uses it")
    )]
    pub(crate) url: String,
    /// The address without a pooler; `None` if `url` is that.
    pub(crate) direct_url: Option<String>,
}

impl std::fmt::Debug for PostgresUrls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostgresUrls")
            .field("is_pooled", &self.direct_url.is_some())
            .finish_non_exhaustive()
    }
}

/// The store that was chosen on the builder.
#[derive(Clone, Debug)]
pub(crate) enum StoreChoice {
    Memory,
    Sqlite(PathBuf),
    Postgres(PostgresUrls),
    #[cfg(feature = "sqlx")]
    Sqlx(core_sqlx::sqlx::PgPool),
    Custom(Arc<dyn Store>),
}

impl StoreChoice {
    /// Returns the database of a cell.
    pub(crate) fn of_cell(cell: &CellOptions) -> Self {
        Self::Postgres(PostgresUrls {
            url: cell.url.expose().to_owned(),
            direct_url: cell.direct_url.as_ref().map(|url| url.expose().to_owned()),
        })
    }

    /// Returns the file of the store; `None` if it is not a file.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(path) => Some(path),
            _ => None,
        }
    }

    /// Returns whether no other process can use the same store.
    pub(crate) fn is_exclusive(&self) -> bool {
        matches!(self, Self::Memory | Self::Sqlite(_))
    }

    /// Returns the method of the builder that chooses this store.
    pub(crate) fn method(&self) -> &'static str {
        match self {
            Self::Memory => "in_memory",
            Self::Sqlite(_) => "sqlite",
            Self::Postgres(_) => "postgres",
            #[cfg(feature = "sqlx")]
            Self::Sqlx(_) => "sqlx",
            Self::Custom(_) => "store",
        }
    }

    /// Returns whether the connections are those of a pool of the host program.
    pub(crate) fn is_host_pool(&self) -> bool {
        match self {
            #[cfg(feature = "sqlx")]
            Self::Sqlx(_) => true,
            _ => false,
        }
    }

    /// Returns whether the records are in a Postgres database.
    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres(_)) || self.is_host_pool()
    }

    /// Returns whether units of work go through a pooler.
    pub(crate) fn is_pooled(&self) -> bool {
        matches!(self, Self::Postgres(urls) if urls.direct_url.is_some())
    }

    /// Returns the wake-up for the worker: from this process, and on Postgres also from other processes.
    pub(crate) fn worker_wake(&self, options: OpenOptions) -> Result<WorkerWake, SuiteError> {
        match self {
            Self::Postgres(urls) => postgres_wake(urls.clone(), options),
            #[cfg(feature = "sqlx")]
            Self::Sqlx(pool) => {
                let hints = core_sqlx::Hints::open(pool, JOBS);
                Ok(WorkerWake::with_hints(Arc::new(hints)))
            }
            _ => Ok(WorkerWake::default()),
        }
    }

    /// Opens the channel of notices that the store provides; `None` if it has none. `process` returns the random name of
    /// this process.
    pub(crate) fn notices(
        &self,
        options: OpenOptions,
        process: impl FnOnce() -> ProcessName,
    ) -> Result<Option<Arc<dyn Notices>>, SuiteError> {
        match self {
            Self::Postgres(urls) => postgres_notices(urls.clone(), options, process()),
            #[cfg(feature = "sqlx")]
            Self::Sqlx(pool) => {
                let schema = options.postgres.schema;
                let notices = core_sqlx::PoolNotices::open(pool, schema, process())?;
                Ok(Some(Arc::new(notices)))
            }
            _ => Ok(None),
        }
    }

    /// Opens the store. Postgres uses the database's clock unless a clock is set.
    pub(crate) async fn open(self, options: OpenOptions) -> Result<Arc<dyn Store>, SuiteError> {
        if !options.cells.is_empty() {
            return open_cells(self, options, Access::Units).await;
        }
        match self {
            Self::Memory => {
                let rows = memory::rows(options.clock_or_system());
                let store = RecordStore::new(rows, options.cursor_key);
                Ok(Arc::new(store.with_page_bytes(options.pool.page_bytes)))
            }
            Self::Sqlite(path) => sqlite(path, options).await,
            Self::Postgres(urls) => postgres(urls, options).await,
            #[cfg(feature = "sqlx")]
            Self::Sqlx(pool) => Ok(core_sqlx::open(sqlx_config(pool, options)).await?),
            Self::Custom(store) => Ok(store),
        }
    }

    /// Opens the rows of the store, and of its cells. Returns `None` for a store of the host program.
    #[cfg(feature = "sqlite")]
    pub(crate) async fn open_rows(
        self,
        options: OpenOptions,
        access: Access,
    ) -> Result<Option<Arc<dyn RowStore>>, SuiteError> {
        if options.cells.is_empty() {
            return self.rows_of_database(options, access).await;
        }
        Ok(Some(rows_of_cells(self, options, access).await?))
    }

    /// Opens the rows of this database alone. Returns `None` for a store of the host program.
    pub(crate) async fn rows_of_database(
        self,
        options: OpenOptions,
        access: Access,
    ) -> Result<Option<Arc<dyn RowStore>>, SuiteError> {
        Ok(Some(match self {
            Self::Memory => memory::rows(options.clock_or_system()),
            Self::Sqlite(path) => sqlite_rows(path, options, access).await?,
            Self::Postgres(urls) => postgres_rows(urls, options, access).await?,
            #[cfg(feature = "sqlx")]
            Self::Sqlx(pool) => core_sqlx::rows(sqlx_config(pool, options), &[]).await?,
            Self::Custom(_) => return Ok(None),
        }))
    }

    /// Returns the migrations that have not run on the database.
    pub(crate) async fn plan_migrations(
        self,
        options: OpenOptions,
    ) -> Result<MigrationPlan, SuiteError> {
        match self {
            #[cfg(feature = "sqlite")]
            Self::Sqlite(path) => {
                let config = sqlite_config(path, options);
                Ok(core_storage::sqlite::plan_migrations(config).await?)
            }
            #[cfg(not(feature = "sqlite"))]
            Self::Sqlite(_) => Err(SuiteError::FeatureMissing("sqlite")),
            #[cfg(feature = "postgres")]
            Self::Postgres(urls) => {
                let config = postgres_config(urls, options);
                Ok(core_storage::postgres::plan_migrations(config).await?)
            }
            #[cfg(not(feature = "postgres"))]
            Self::Postgres(_) => Err(SuiteError::FeatureMissing("postgres")),
            #[cfg(feature = "sqlx")]
            Self::Sqlx(pool) => Ok(core_sqlx::plan_migrations(sqlx_config(pool, options)).await?),
            Self::Memory | Self::Custom(_) => {
                // Only the databases use them, each with its feature.
                drop(options);
                Err(SuiteError::NoMigrations)
            }
        }
    }

    /// Returns the number of bytes of the write-ahead log by which the replica is behind; `None` without a replica.
    pub(crate) async fn replica_lag(self, options: OpenOptions) -> Result<Option<u64>, SuiteError> {
        match self {
            #[cfg(feature = "postgres")]
            Self::Postgres(urls) => {
                let config = postgres_config(urls, options);
                Ok(core_storage::postgres::measure_replica_lag(config).await?)
            }
            _ => {
                // Only Postgres uses them.
                drop(options);
                Ok(None)
            }
        }
    }

    /// Opens the store for reading, while another process may use it. Only SQLite and Postgres differ from
    /// [`Self::open`].
    pub(crate) async fn open_read_only(
        self,
        options: OpenOptions,
    ) -> Result<Arc<dyn Store>, SuiteError> {
        if !options.cells.is_empty() {
            return open_cells(self, options, Access::ReadOnly).await;
        }
        match self {
            Self::Sqlite(path) => sqlite_read_only(path, options).await,
            Self::Postgres(urls) => postgres_read_only(urls, options).await,
            other => other.open(options).await,
        }
    }
}

/// Opens the store over home and the other cells.
async fn open_cells(
    home: StoreChoice,
    options: OpenOptions,
    access: Access,
) -> Result<Arc<dyn Store>, SuiteError> {
    let cursor_key = options.cursor_key.clone();
    let pool = options.pool;
    let rows = rows_of_cells(home, options, access).await?;
    let store = RecordStore::new(rows, cursor_key).with_page_bytes(pool.page_bytes);
    Ok(Arc::new(
        store.with_retry_timeout(pool.postgres_retry_timeout),
    ))
}

/// Opens the rows of home and of the other cells as one store.
async fn rows_of_cells(
    home: StoreChoice,
    options: OpenOptions,
    access: Access,
) -> Result<Arc<dyn RowStore>, SuiteError> {
    Ok(Arc::new(cell_rows(home, options, access).await?))
}

/// Opens the rows of home and of the other cells.
pub(crate) async fn cell_rows(
    home: StoreChoice,
    mut options: OpenOptions,
    access: Access,
) -> Result<CellRows, SuiteError> {
    let cells = std::mem::take(&mut options.cells);
    let entropy = Arc::clone(&options.entropy);
    let mut configs = vec![CellConfig {
        name: HOME_NAME.to_owned(),
        rows: rows_of_cell(home, options.clone(), access).await?,
        takes_new_platforms: cells.home_takes_new_platforms,
    }];
    for cell in cells.others {
        options.replica_url.clone_from(&cell.replica_url);
        configs.push(CellConfig {
            rows: rows_of_other_cell(&cell, options.clone(), access).await?,
            name: cell.name,
            takes_new_platforms: cell.takes_new_platforms,
        });
    }
    Ok(match access {
        Access::Units | Access::Direct => CellRows::open(configs, entropy).await?,
        Access::ReadOnly => CellRows::open_read_only(configs, entropy).await?,
    })
}

/// Opens the rows of another cell than home. If servers cannot reach it now, they open it later, and serve the platforms of the
/// other cells.
async fn rows_of_other_cell(
    cell: &CellOptions,
    options: OpenOptions,
    access: Access,
) -> Result<Arc<dyn RowStore>, SuiteError> {
    let (choice, name) = (StoreChoice::of_cell(cell), cell.name.clone());
    match rows_of_cell(choice.clone(), options.clone(), access).await {
        Err(SuiteError::Store(StoreError::Unavailable(error))) if access == Access::Units => {
            tracing::error!(cell = %name, %error, "the database of a cell cannot be reached; its platforms are not served yet");
            Ok(Arc::new(LateRows::new(move || {
                Box::pin(rows_of_cell(choice.clone(), options.clone(), access))
            })))
        }
        outcome => outcome,
    }
}

async fn rows_of_cell(
    store: StoreChoice,
    options: OpenOptions,
    access: Access,
) -> Result<Arc<dyn RowStore>, SuiteError> {
    let rows = store.rows_of_database(options, access).await?;
    rows.ok_or_else(|| {
        SuiteError::Setting(ConfigError {
            setting: "cells",
            problem: "need a database of the suite, not a store of the host program".to_owned(),
        })
    })
}

#[cfg(feature = "sqlite")]
fn sqlite_config(path: PathBuf, options: OpenOptions) -> core_storage::sqlite::SqliteConfig {
    let clock = options.clock_or_system();
    let mut config = core_storage::sqlite::SqliteConfig::new(path, clock, options.cursor_key);
    config.readers = options.pool.sqlite_readers;
    config.acquire_timeout = options.pool.sqlite_acquire_timeout;
    config.read_timeout = options.pool.sqlite_read_timeout;
    config.page_bytes = options.pool.page_bytes;
    config.migrations = options.migrations;
    config
}

#[cfg(feature = "sqlite")]
async fn sqlite_rows(
    path: PathBuf,
    options: OpenOptions,
    access: Access,
) -> Result<Arc<dyn RowStore>, SuiteError> {
    let config = sqlite_config(path, options);
    Ok(match access {
        Access::Units | Access::Direct => core_storage::sqlite::rows(config, &[]).await?,
        Access::ReadOnly => core_storage::sqlite::rows_read_only(config).await?,
    })
}

#[cfg(not(feature = "sqlite"))]
async fn sqlite_rows(
    _: PathBuf,
    _: OpenOptions,
    _: Access,
) -> Result<Arc<dyn RowStore>, SuiteError> {
    Err(SuiteError::FeatureMissing("sqlite"))
}

#[cfg(feature = "sqlite")]
async fn sqlite(path: PathBuf, options: OpenOptions) -> Result<Arc<dyn Store>, SuiteError> {
    Ok(core_storage::sqlite::open(sqlite_config(path, options)).await?)
}

#[cfg(feature = "sqlite")]
async fn sqlite_read_only(
    path: PathBuf,
    options: OpenOptions,
) -> Result<Arc<dyn Store>, SuiteError> {
    Ok(core_storage::sqlite::open_read_only(sqlite_config(path, options)).await?)
}

#[cfg(not(feature = "sqlite"))]
async fn sqlite(_: PathBuf, _: OpenOptions) -> Result<Arc<dyn Store>, SuiteError> {
    Err(SuiteError::FeatureMissing("sqlite"))
}

#[cfg(not(feature = "sqlite"))]
async fn sqlite_read_only(_: PathBuf, _: OpenOptions) -> Result<Arc<dyn Store>, SuiteError> {
    Err(SuiteError::FeatureMissing("sqlite"))
}

/// The Postgres channel on which workers of one database wake each other.
#[cfg(any(feature = "postgres", feature = "sqlx"))]
const JOBS: &str = "core_jobs";

#[cfg(feature = "postgres")]
fn postgres_config(
    urls: PostgresUrls,
    options: OpenOptions,
) -> core_storage::postgres::PostgresConfig {
    let mut config = core_storage::postgres::PostgresConfig::new(urls.url, options.cursor_key);
    config.direct_url = urls.direct_url;
    config.replica = options
        .replica_url
        .map(|url| core_storage::postgres::ReplicaConfig {
            url: url.expose().to_owned(),
            max_staleness: options.pool.postgres_max_staleness,
        });
    config.clock = options.clock;
    config.schema = options.postgres.schema;
    config.root_certificates = options.postgres.root_certificates;
    let pool = options.pool;
    config.connections = pool.postgres_connections;
    config.acquire_timeout = pool.postgres_acquire_timeout;
    config.connect_timeout = pool.postgres_connect_timeout;
    config.tcp_user_timeout = pool.postgres_tcp_user_timeout;
    config.keepalive = core_storage::postgres::Keepalive {
        idle: pool.postgres_keepalive_idle,
        interval: pool.postgres_keepalive_interval,
        count: pool.postgres_keepalive_count,
    };
    config.max_idle = pool.postgres_max_idle;
    config.client_check_interval = pool.postgres_client_check_interval;
    config.reply_margin = pool.postgres_answer_margin;
    config.retry_timeout = pool.postgres_retry_timeout;
    config.statement_timeout = pool.postgres_statement_timeout;
    config.lock_timeout = pool.postgres_lock_timeout;
    config.idle_timeout = pool.postgres_idle_timeout;
    config.page_bytes = pool.page_bytes;
    config.migrations = options.migrations;
    config
}

#[cfg(feature = "sqlx")]
fn sqlx_config(pool: core_sqlx::sqlx::PgPool, options: OpenOptions) -> core_sqlx::SqlxConfig {
    let mut config = core_sqlx::SqlxConfig::new(pool, options.cursor_key);
    config.clock = options.clock;
    config.schema = options.postgres.schema;
    let pool = options.pool;
    config.timeouts.statement = pool.postgres_statement_timeout;
    config.timeouts.lock = pool.postgres_lock_timeout;
    config.timeouts.idle = pool.postgres_idle_timeout;
    config.timeouts.client_check_interval = pool.postgres_client_check_interval;
    config.answer_margin = pool.postgres_answer_margin;
    config.retry_timeout = pool.postgres_retry_timeout;
    config.page_bytes = pool.page_bytes;
    config.migrations = options.migrations;
    config
}

#[cfg(feature = "postgres")]
fn postgres_wake(urls: PostgresUrls, options: OpenOptions) -> Result<WorkerWake, SuiteError> {
    let config = postgres_config(urls, options);
    let hints = core_storage::postgres::Hints::open(&config, JOBS)?;
    Ok(WorkerWake::with_hints(Arc::new(hints)))
}

#[cfg(not(feature = "postgres"))]
fn postgres_wake(_: PostgresUrls, _: OpenOptions) -> Result<WorkerWake, SuiteError> {
    Ok(WorkerWake::default())
}

#[cfg(feature = "postgres")]
fn postgres_notices(
    urls: PostgresUrls,
    options: OpenOptions,
    process: ProcessName,
) -> Result<Option<Arc<dyn Notices>>, SuiteError> {
    let config = postgres_config(urls, options);
    let notices = core_storage::postgres::PostgresNotices::open(&config, process)?;
    Ok(Some(Arc::new(notices)))
}

#[cfg(not(feature = "postgres"))]
fn postgres_notices(
    _: PostgresUrls,
    _: OpenOptions,
    _: ProcessName,
) -> Result<Option<Arc<dyn Notices>>, SuiteError> {
    Ok(None)
}

#[cfg(feature = "postgres")]
async fn postgres(urls: PostgresUrls, options: OpenOptions) -> Result<Arc<dyn Store>, SuiteError> {
    Ok(core_storage::postgres::open(postgres_config(urls, options)).await?)
}

#[cfg(feature = "postgres")]
async fn postgres_rows(
    urls: PostgresUrls,
    options: OpenOptions,
    access: Access,
) -> Result<Arc<dyn RowStore>, SuiteError> {
    let config = postgres_config(urls, options);
    Ok(match access {
        Access::Units => core_storage::postgres::rows(config, &[]).await?,
        Access::Direct => core_storage::postgres::rows(config.into_direct(), &[]).await?,
        Access::ReadOnly => core_storage::postgres::rows_read_only(config).await?,
    })
}

#[cfg(not(feature = "postgres"))]
async fn postgres_rows(
    _: PostgresUrls,
    _: OpenOptions,
    _: Access,
) -> Result<Arc<dyn RowStore>, SuiteError> {
    Err(SuiteError::FeatureMissing("postgres"))
}

#[cfg(not(feature = "postgres"))]
async fn postgres(_: PostgresUrls, _: OpenOptions) -> Result<Arc<dyn Store>, SuiteError> {
    Err(SuiteError::FeatureMissing("postgres"))
}

#[cfg(feature = "postgres")]
async fn postgres_read_only(
    urls: PostgresUrls,
    options: OpenOptions,
) -> Result<Arc<dyn Store>, SuiteError> {
    Ok(core_storage::postgres::open_read_only(postgres_config(urls, options)).await?)
}

#[cfg(not(feature = "postgres"))]
async fn postgres_read_only(_: PostgresUrls, _: OpenOptions) -> Result<Arc<dyn Store>, SuiteError> {
    Err(SuiteError::FeatureMissing("postgres"))
}
