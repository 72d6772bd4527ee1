//! Opening the store that was chosen.

use std::path::PathBuf;
use std::sync::Arc;

use core_domain::kernel::Clock;
use core_domain::port::Store;
use core_storage::{CursorKey, memory};
use serde::{Deserialize, Serialize};

use crate::{SuiteError, SystemClock};

/// How many connections a store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PoolOptions {
    /// Connections to Postgres at the most. 16 unless set.
    pub postgres_connections: u32,
    /// Units that read SQLite at once. 4 unless set.
    pub sqlite_readers: u32,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            postgres_connections: 16,
            sqlite_readers: 4,
        }
    }
}

/// How to open a store.
#[derive(Clone, Debug)]
pub(crate) struct OpenOptions {
    pub(crate) clock: Option<Arc<dyn Clock>>,
    pub(crate) cursor_key: CursorKey,
    #[cfg_attr(
        not(any(feature = "sqlite", feature = "postgres")),
        expect(dead_code, reason = "the store in memory has no connections")
    )]
    pub(crate) pool: PoolOptions,
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

    /// Opens it. A database server tells the time itself unless a clock is given.
    pub(crate) async fn open(self, options: OpenOptions) -> Result<Arc<dyn Store>, SuiteError> {
        match self {
            Self::Memory => Ok(memory::open(memory::MemoryConfig {
                clock: options.clock_or_system(),
                cursor_key: options.cursor_key,
            })),
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
    Ok(sqlite::open(config).await?)
}

#[cfg(not(feature = "sqlite"))]
async fn sqlite(_: PathBuf, _: OpenOptions) -> Result<Arc<dyn Store>, SuiteError> {
    Err(SuiteError::FeatureMissing("sqlite"))
}

#[cfg(feature = "postgres")]
async fn postgres(url: String, options: OpenOptions) -> Result<Arc<dyn Store>, SuiteError> {
    use core_storage::postgres;

    let mut config = postgres::PostgresConfig::new(url, options.cursor_key);
    config.clock = options.clock;
    config.connections = options.pool.postgres_connections;
    Ok(postgres::open(config).await?)
}

#[cfg(not(feature = "postgres"))]
async fn postgres(_: String, _: OpenOptions) -> Result<Arc<dyn Store>, SuiteError> {
    Err(SuiteError::FeatureMissing("postgres"))
}
