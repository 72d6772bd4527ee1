//! Opening the store that was chosen.

use std::path::PathBuf;
use std::sync::Arc;

use core_domain::kernel::Clock;
use core_domain::port::Store;
use core_storage::{CursorKey, memory};

use crate::{SuiteError, SystemClock};

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
    pub(crate) async fn open(
        self,
        clock: Option<Arc<dyn Clock>>,
        cursor_key: CursorKey,
    ) -> Result<Arc<dyn Store>, SuiteError> {
        match self {
            Self::Memory => {
                let clock = clock.unwrap_or_else(|| Arc::new(SystemClock));
                Ok(memory::open(memory::MemoryConfig { clock, cursor_key }))
            }
            Self::Sqlite(path) => {
                let clock = clock.unwrap_or_else(|| Arc::new(SystemClock));
                sqlite(path, clock, cursor_key).await
            }
            Self::Postgres(url) => postgres(url, clock, cursor_key).await,
            Self::Given(store) => Ok(store),
        }
    }
}

#[cfg(feature = "sqlite")]
async fn sqlite(
    path: PathBuf,
    clock: Arc<dyn Clock>,
    cursor_key: CursorKey,
) -> Result<Arc<dyn Store>, SuiteError> {
    use core_storage::sqlite;

    let config = sqlite::SqliteConfig::new(path, clock, cursor_key);
    Ok(sqlite::open(config).await?)
}

#[cfg(not(feature = "sqlite"))]
async fn sqlite(_: PathBuf, _: Arc<dyn Clock>, _: CursorKey) -> Result<Arc<dyn Store>, SuiteError> {
    Err(SuiteError::FeatureMissing("sqlite"))
}

#[cfg(feature = "postgres")]
async fn postgres(
    url: String,
    clock: Option<Arc<dyn Clock>>,
    cursor_key: CursorKey,
) -> Result<Arc<dyn Store>, SuiteError> {
    use core_storage::postgres;

    let mut config = postgres::PostgresConfig::new(url, cursor_key);
    config.clock = clock;
    Ok(postgres::open(config).await?)
}

#[cfg(not(feature = "postgres"))]
async fn postgres(
    _: String,
    _: Option<Arc<dyn Clock>>,
    _: CursorKey,
) -> Result<Arc<dyn Store>, SuiteError> {
    Err(SuiteError::FeatureMissing("postgres"))
}
