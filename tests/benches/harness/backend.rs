//! The stores, and the locations of a measured process's data.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use core_domain::port::{JobHints, Store};
use core_sqlx::SqlxConfig;
use core_sqlx::sqlx::PgPool;
use core_sqlx::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use core_storage::testing::TestDatabase;
use core_storage::{memory, postgres, sqlite};
use core_suite::{PoolOptions, Suite, SuiteBuilder, SystemClock};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

pub(crate) use core_testkit::Backend;

const KEY: [u8; 32] = [7; 32];
/// The channel on which the workers of a suite wake each other.
const CHANNEL: &str = "core_jobs";

/// Returns whether the URL of a Postgres server is set, on which databases can be created.
#[expect(
    clippy::disallowed_methods,
    reason = "the only setting of tests and benchmarks"
)]
pub(crate) fn has_postgres() -> bool {
    std::env::var("CORE_TEST_POSTGRES_URL").is_ok_and(|url| !url.is_empty())
}

/// A store, and the folder and database of its data. Child processes receive it as their configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Location {
    pub(crate) backend: Backend,
    folder: PathBuf,
    url: String,
}

/// A fresh location, which is removed when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) location: Location,
    _folder: TempDir,
    _database: Option<TestDatabase>,
}

impl Place {
    pub(crate) fn new(backend: Backend) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = backend.is_postgres().then(database);
        let url = database.as_ref().map(|database| database.url.clone());
        let location = Location {
            backend,
            folder: folder.path().to_owned(),
            url: url.unwrap_or_default(),
        };
        Self {
            location,
            _folder: folder,
            _database: database,
        }
    }
}

fn database() -> TestDatabase {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(core_storage::testing::postgres())
}

/// Why a benchmark stops.
const NO_CELLS: &str = "the benchmarks do not measure cells";

impl Location {
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn file(&self) -> PathBuf {
        self.folder.join("core.sqlite")
    }

    /// Returns a builder for a suite with its data here.
    pub(crate) fn suite(&self) -> SuiteBuilder {
        let builder = Suite::builder().data_folder(self.folder.join("data"));
        match self.backend {
            Backend::Memory => builder.in_memory(),
            Backend::Sqlite => builder.sqlite(self.file()),
            Backend::Postgres => builder.postgres(&self.url),
            Backend::Sqlx => builder.sqlx(self.sqlx_pool()),
            Backend::Cells => panic!("{NO_CELLS}"),
        }
    }

    /// Opens a pool as a host program does, with the number of connections of the engine on tokio-postgres.
    fn sqlx_pool(&self) -> PgPool {
        let options: PgConnectOptions = self.url.parse().unwrap();
        PgPoolOptions::new()
            .max_connections(PoolOptions::default().postgres_connections)
            .test_before_acquire(false)
            .connect_lazy_with(options.statement_cache_capacity(1_024))
    }

    /// Returns the hints that wake workers on other nodes; `None` if the store cannot have other nodes.
    pub(crate) fn hints(&self) -> Option<Arc<dyn JobHints>> {
        match self.backend {
            Backend::Memory | Backend::Sqlite | Backend::Cells => None,
            Backend::Postgres => {
                let config = postgres::PostgresConfig::new(&self.url, KEY);
                Some(Arc::new(postgres::Hints::open(&config, CHANNEL).unwrap()))
            }
            Backend::Sqlx => Some(Arc::new(core_sqlx::Hints::open(&self.sqlx_pool(), CHANNEL))),
        }
    }

    /// Removes deleted rows from the tables at once. Postgres does this on its own only every few minutes.
    pub(crate) async fn vacuum(&self) {
        if self.backend.is_postgres() {
            let database = core_storage::testing::connect(&self.url).await;
            database.batch_execute("VACUUM ANALYZE").await.unwrap();
        }
    }

    /// Opens the store without a suite.
    pub(crate) async fn store(&self) -> Arc<dyn Store> {
        let clock = Arc::new(SystemClock);
        match self.backend {
            Backend::Memory => memory::open(memory::MemoryConfig {
                clock,
                cursor_key: KEY.into(),
            }),
            Backend::Sqlite => {
                let config = sqlite::SqliteConfig::new(self.file(), clock, KEY);
                sqlite::open(config).await.unwrap()
            }
            Backend::Postgres => {
                let config = postgres::PostgresConfig::new(&self.url, KEY);
                postgres::open(config).await.unwrap()
            }
            Backend::Sqlx => {
                let config = SqlxConfig::new(self.sqlx_pool(), KEY);
                core_sqlx::open(config).await.unwrap()
            }
            Backend::Cells => panic!("{NO_CELLS}"),
        }
    }
}
