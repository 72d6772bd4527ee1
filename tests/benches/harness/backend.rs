//! The stores, and where a measured process keeps its data.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use core_domain::port::{JobHints, Store};
use core_storage::testing::TestDatabase;
use core_storage::{memory, postgres, sqlite};
use core_suite::{Suite, SuiteBuilder, SystemClock};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

const KEY: [u8; 32] = [7; 32];

/// A store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Backend {
    Memory,
    #[serde(rename = "SQLite")]
    Sqlite,
    Postgres,
}

impl Backend {
    /// The name people know it by.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "SQLite",
            Self::Postgres => "Postgres",
        }
    }
}

/// Whether a Postgres server was given, to create databases on.
#[expect(
    clippy::disallowed_methods,
    reason = "the one setting of tests and benchmarks"
)]
pub(crate) fn has_postgres() -> bool {
    std::env::var("CORE_TEST_POSTGRES_URL").is_ok_and(|url| !url.is_empty())
}

/// A store and the folder and database its data is in: what a child process is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Location {
    pub(crate) backend: Backend,
    folder: PathBuf,
    url: String,
}

/// A location of its own, removed when dropped.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) location: Location,
    _folder: TempDir,
    _database: Option<TestDatabase>,
}

impl Place {
    pub(crate) fn new(backend: Backend) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let database = (backend == Backend::Postgres).then(database);
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

impl Location {
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn file(&self) -> PathBuf {
        self.folder.join("core.sqlite")
    }

    /// A suite with its data here.
    pub(crate) fn suite(&self) -> SuiteBuilder {
        let builder = Suite::builder().data_folder(self.folder.join("data"));
        match self.backend {
            Backend::Memory => builder.in_memory(),
            Backend::Sqlite => builder.sqlite(self.file()),
            Backend::Postgres => builder.postgres(&self.url),
        }
    }

    /// What wakes workers on other nodes of the store; none where there can be no others.
    pub(crate) fn hints(&self) -> Option<Arc<dyn JobHints>> {
        let config = postgres::PostgresConfig::new(&self.url, KEY);
        (self.backend == Backend::Postgres)
            .then(|| Arc::new(postgres::Hints::open(&config, "core_jobs").unwrap()) as _)
    }

    /// Takes deleted rows out of the tables at once, which Postgres does by itself from minute to minute.
    pub(crate) async fn vacuum(&self) {
        if self.backend == Backend::Postgres {
            let database = core_storage::testing::connect(&self.url).await;
            database.batch_execute("VACUUM ANALYZE").await.unwrap();
        }
    }

    /// The store alone.
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
        }
    }
}
