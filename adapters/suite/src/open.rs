//! Opening the store that was chosen.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Clock, duration_text};
use core_domain::port::Store;
use core_storage::{CursorKey, DEFAULT_PAGE_BYTES, RecordStore, memory};
use serde::{Deserialize, Serialize};

use crate::worker::WorkerWake;
use crate::{SuiteError, SystemClock};

/// How many connections a store has, how long it waits for what, and how large its pages get.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PoolOptions {
    /// Connections to Postgres at the most. 16 unless set.
    pub postgres_connections: u32,
    /// Units that read SQLite at once. 4 unless set.
    pub sqlite_readers: u32,
    /// The time that a unit waits for its turn to write to SQLite, or for a connection to read from it. Default: 10 s.
    #[serde(with = "duration_text")]
    pub sqlite_acquire_timeout: Duration,
    /// The time after which a read from SQLite without a limit is interrupted, such as a count or a walk. Default: 20 s.
    #[serde(with = "duration_text")]
    pub sqlite_read_timeout: Duration,
    /// How long a unit waits for a connection to Postgres. 10 s unless set: less than a request waits for its answer.
    #[serde(with = "duration_text")]
    pub postgres_acquire_timeout: Duration,
    /// Maximum time to open a connection to one address of one Postgres host; the next one follows. Default: 3 s. A
    /// `connect_timeout` in the URL wins.
    #[serde(with = "duration_text")]
    pub postgres_connect_timeout: Duration,
    /// How long bytes sent to Postgres may stay unacknowledged before the connection is closed (`TCP_USER_TIMEOUT`). Default:
    /// 10 s. A `tcp_user_timeout` in the URL wins.
    #[serde(with = "duration_text")]
    pub postgres_tcp_user_timeout: Duration,
    /// How long a connection to Postgres is silent before the system probes it. Default: 10 s. A `keepalives_idle` in the
    /// URL wins.
    #[serde(with = "duration_text")]
    pub postgres_keepalive_idle: Duration,
    /// The time between these probes. Default: 5 s. A `keepalives_interval` in the URL wins.
    #[serde(with = "duration_text")]
    pub postgres_keepalive_interval: Duration,
    /// The number of unanswered probes after which the connection is closed. Default: 3. A `keepalives_retries` in the URL
    /// wins.
    pub postgres_keepalive_count: u32,
    /// How long a connection to Postgres may stay unused before it is closed. Default: 10 min.
    #[serde(with = "duration_text")]
    pub postgres_max_idle: Duration,
    /// How often Postgres looks during a statement whether this process is still connected
    /// (`client_connection_check_interval`); zero leaves it to the server, which versions before 14 require. Default: 1 s.
    #[serde(with = "duration_text")]
    pub postgres_client_check_interval: Duration,
    /// How much longer than the statement time-out the answer of Postgres is waited for before the connection is closed.
    /// Default: 5 s.
    #[serde(with = "duration_text")]
    pub postgres_answer_margin: Duration,
    /// How long a unit of work that meets conflicts on Postgres is run again, counted from its first run. Default: 10 s.
    #[serde(with = "duration_text")]
    pub postgres_retry_timeout: Duration,
    /// How long a statement may take on Postgres; zero is for ever. 20 s unless set.
    #[serde(with = "duration_text")]
    pub postgres_statement_timeout: Duration,
    /// How long a statement waits for a lock on Postgres; zero is for ever. 5 s unless set.
    #[serde(with = "duration_text")]
    pub postgres_lock_timeout: Duration,
    /// After which silence of this process Postgres gives up a transaction; zero is never. 30 s unless set.
    #[serde(with = "duration_text")]
    pub postgres_idle_timeout: Duration,
    /// The byte budget of a page of a list, on every store: a page that reaches it is shorter than asked for, and has a cursor.
    /// Default: 1 MiB.
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
            postgres_statement_timeout: Duration::from_secs(20),
            postgres_lock_timeout: Duration::from_secs(5),
            postgres_idle_timeout: Duration::from_secs(30),
            page_bytes: DEFAULT_PAGE_BYTES,
        }
    }
}

/// Where in a Postgres database the records are, and whose server that may be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PostgresOptions {
    /// The schema of the tables, created if missing: small letters, digits and `_`. That of the connection unless set. With
    /// one of its own the suite shares a database with other tables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// A file of certificates (PEM) that the server's certificate must come from, for an address with
    /// `sslmode=verify-ca` or `sslmode=verify-full`. Those of the system unless set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_certificates: Option<PathBuf>,
}

/// How to open a store.
#[derive(Clone, Debug)]
pub(crate) struct OpenOptions {
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) cursor_key: CursorKey,
    pub(crate) pool: PoolOptions,
    #[cfg_attr(
        not(feature = "postgres"),
        expect(dead_code, reason = "other stores have neither")
    )]
    pub(crate) postgres: PostgresOptions,
}

impl OpenOptions {
    fn clock_or_system(&self) -> Arc<dyn Clock> {
        let clock = self.clock.clone();
        clock.unwrap_or_else(|| Arc::new(SystemClock))
    }
}

/// Which store to open.
#[derive(Clone, Debug)]
pub(crate) enum StoreChoice {
    Memory,
    Sqlite(PathBuf),
    Postgres(String),
    Given(Arc<dyn Store>),
}

impl StoreChoice {
    /// Whether no other process can use the same store.
    pub(crate) fn is_ours_alone(&self) -> bool {
        matches!(self, Self::Memory | Self::Sqlite(_))
    }

    /// What wakes the worker: this process, and on a database server the others on it.
    #[cfg(feature = "postgres")]
    pub(crate) fn worker_wake(&self, options: OpenOptions) -> Result<WorkerWake, SuiteError> {
        let Self::Postgres(url) = self else {
            return Ok(WorkerWake::default());
        };
        let config = postgres_config(url.clone(), options);
        let hints = core_storage::postgres::Hints::open(&config, JOBS)?;
        Ok(WorkerWake::with_hints(Arc::new(hints)))
    }

    /// What wakes the worker: this process.
    #[cfg(not(feature = "postgres"))]
    pub(crate) fn worker_wake(&self, _: OpenOptions) -> Result<WorkerWake, SuiteError> {
        Ok(WorkerWake::default())
    }

    /// Opens it. A database server tells the time itself unless a clock is given.
    pub(crate) async fn open(self, options: OpenOptions) -> Result<Arc<dyn Store>, SuiteError> {
        match self {
            Self::Memory => {
                let rows = memory::rows(options.clock_or_system());
                let store = RecordStore::new(rows, options.cursor_key);
                Ok(Arc::new(store.with_page_bytes(options.pool.page_bytes)))
            }
            Self::Sqlite(path) => sqlite(path, options).await,
            Self::Postgres(url) => postgres(url, options).await,
            Self::Given(store) => Ok(store),
        }
    }
}

#[cfg(feature = "sqlite")]
async fn sqlite(path: PathBuf, options: OpenOptions) -> Result<Arc<dyn Store>, SuiteError> {
    use core_storage::sqlite;

    let clock = options.clock_or_system();
    let mut config = sqlite::SqliteConfig::new(path, clock, options.cursor_key);
    config.readers = options.pool.sqlite_readers;
    config.acquire_timeout = options.pool.sqlite_acquire_timeout;
    config.read_timeout = options.pool.sqlite_read_timeout;
    config.page_bytes = options.pool.page_bytes;
    Ok(sqlite::open(config).await?)
}

#[cfg(not(feature = "sqlite"))]
async fn sqlite(_: PathBuf, _: OpenOptions) -> Result<Arc<dyn Store>, SuiteError> {
    Err(SuiteError::FeatureMissing("sqlite"))
}

/// The channel on which workers on one database wake each other.
#[cfg(feature = "postgres")]
const JOBS: &str = "core_jobs";

#[cfg(feature = "postgres")]
fn postgres_config(url: String, options: OpenOptions) -> core_storage::postgres::PostgresConfig {
    let mut config = core_storage::postgres::PostgresConfig::new(url, options.cursor_key);
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
    config.answer_margin = pool.postgres_answer_margin;
    config.retry_timeout = pool.postgres_retry_timeout;
    config.statement_timeout = pool.postgres_statement_timeout;
    config.lock_timeout = pool.postgres_lock_timeout;
    config.idle_timeout = pool.postgres_idle_timeout;
    config.page_bytes = pool.page_bytes;
    config
}

#[cfg(feature = "postgres")]
async fn postgres(url: String, options: OpenOptions) -> Result<Arc<dyn Store>, SuiteError> {
    Ok(core_storage::postgres::open(postgres_config(url, options)).await?)
}

#[cfg(not(feature = "postgres"))]
async fn postgres(_: String, _: OpenOptions) -> Result<Arc<dyn Store>, SuiteError> {
    Err(SuiteError::FeatureMissing("postgres"))
}
