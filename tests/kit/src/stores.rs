//! The stores that tests run on.

use std::any::Any;
use std::path::PathBuf;
use std::sync::Arc;

use core_domain::port::Store;
use core_domain::testing::{ManualClock, SeededEntropy};
use core_sqlx::SqlxConfig;
use core_sqlx::sqlx::PgPool;
use core_sqlx::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use core_storage::cells::{CellConfig, CellRows};
use core_storage::fault::FaultStore;
use core_storage::memory::MemoryRows;
use core_storage::{RecordStore, RowStore, postgres, sqlite, testing};
use serde::{Deserialize, Serialize};

/// The key that signs the cursors of pages.
const KEY: [u8; 32] = [7; 32];

/// A kind of store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Backend {
    /// Rows in the memory of the process.
    Memory,
    /// A SQLite file in a temporary folder.
    Sqlite,
    /// A new database on the Postgres server of `CORE_TEST_POSTGRES_URL`.
    Postgres,
    /// The same, on a pool of sqlx.
    Sqlx,
    /// Three cells in the memory of the process. The home cell takes new platforms as well.
    Cells,
}

/// The location of the rows.
#[derive(Clone, Debug)]
pub enum StoreLocation {
    /// Rows in the memory of the process.
    Process(Arc<MemoryRows>),
    /// The path of a SQLite file.
    File(PathBuf),
    /// The URL of a Postgres database.
    Database(String),
    /// Rows in several cells in the memory of the process.
    Cells,
}

impl StoreLocation {
    /// Removes the guards of the database that keep append-only rows unchanged.
    ///
    /// # Panics
    /// If the database cannot be changed.
    pub async fn drop_guards(&self) {
        match self {
            Self::Process(_) | Self::Cells => {}
            Self::File(path) => testing::drop_sqlite_guards(path).unwrap(),
            Self::Database(url) => {
                let database = testing::connect(url).await;
                testing::drop_postgres_guards(&database).await.unwrap();
            }
        }
    }
}

/// An open store, and everything that must live as long as the store.
pub struct OpenStore {
    /// The store of records, which services and workers use.
    pub store: Arc<dyn Store>,
    /// The rows below `store`, for changes that no use case makes.
    pub rows: Arc<dyn RowStore>,
    /// The location of the rows.
    pub location: StoreLocation,
    /// The resources of the store, such as a temporary folder. They are freed on drop.
    pub resources: Box<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for OpenStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenStore")
            .field("location", &self.location)
            .finish_non_exhaustive()
    }
}

impl OpenStore {
    /// Opens an empty store in memory.
    #[must_use]
    pub fn in_memory(clock: Arc<ManualClock>) -> Self {
        Self::over_memory(MemoryRows::new(clock))
    }

    /// Opens a store over rows in memory.
    #[must_use]
    pub fn over_memory(rows: Arc<MemoryRows>) -> Self {
        Self::over(Arc::clone(&rows) as _, StoreLocation::Process(rows), ())
    }

    /// Returns the same store, which fails on demand, and the handle that makes it fail.
    #[must_use]
    pub fn faulty(self) -> (Self, FaultStore) {
        let faults = FaultStore::new(self.rows);
        let rows: Arc<dyn RowStore> = Arc::new(faults.clone());
        let opened = Self {
            store: record_store(&rows),
            rows,
            ..self
        };
        (opened, faults)
    }

    fn over(
        rows: Arc<dyn RowStore>,
        location: StoreLocation,
        resources: impl Any + Send + Sync,
    ) -> Self {
        Self {
            store: record_store(&rows),
            rows,
            location,
            resources: Box::new(resources),
        }
    }
}

fn record_store(rows: &Arc<dyn RowStore>) -> Arc<dyn Store> {
    Arc::new(RecordStore::new(Arc::clone(rows), KEY))
}

impl Backend {
    /// All kinds of stores.
    pub const ALL: [Self; 5] = [
        Self::Memory,
        Self::Sqlite,
        Self::Postgres,
        Self::Sqlx,
        Self::Cells,
    ];

    /// Returns whether the rows are in a Postgres database.
    #[must_use]
    pub const fn is_postgres(self) -> bool {
        matches!(self, Self::Postgres | Self::Sqlx)
    }

    /// The name for reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Sqlite => "SQLite",
            Self::Postgres => "Postgres",
            Self::Sqlx => "sqlx",
            Self::Cells => "cells",
        }
    }

    /// Opens an empty store.
    ///
    /// # Panics
    /// If the store cannot be opened, or `CORE_TEST_POSTGRES_URL` names no server and the store needs one.
    pub async fn open(self, clock: Arc<ManualClock>) -> OpenStore {
        match self {
            Self::Memory => OpenStore::in_memory(clock),
            Self::Sqlite => {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("core.db");
                let mut config = sqlite::SqliteConfig::new(&path, clock, KEY);
                config.synchronous = sqlite::Synchronous::Normal;
                let rows = sqlite::rows(config, &[]).await.unwrap();
                OpenStore::over(rows, StoreLocation::File(path), folder)
            }
            Self::Postgres => {
                let database = testing::postgres().await;
                let mut config = postgres::PostgresConfig::new(&database.url, KEY);
                config.clock = Some(clock);
                let rows = postgres::rows(config, &[]).await.unwrap();
                let location = StoreLocation::Database(database.url.clone());
                OpenStore::over(rows, location, database)
            }
            Self::Sqlx => {
                let database = testing::postgres().await;
                let mut config = SqlxConfig::new(sqlx_pool(&database.url), KEY);
                config.clock = Some(clock);
                let rows = core_sqlx::rows(config, &[]).await.unwrap();
                let location = StoreLocation::Database(database.url.clone());
                OpenStore::over(rows, location, database)
            }
            Self::Cells => {
                let cell = |name: &str| CellConfig {
                    name: name.to_owned(),
                    rows: MemoryRows::new(clock.clone()),
                    takes_new_platforms: true,
                };
                let cells = ["home", "a", "b"].map(cell).into();
                let rows = CellRows::open(cells, Arc::new(SeededEntropy::new(1))).await;
                OpenStore::over(Arc::new(rows.unwrap()), StoreLocation::Cells, ())
            }
        }
    }
}

/// Creates a pool of 16 connections, as a host program does.
///
/// # Panics
/// If the URL is invalid.
#[must_use]
pub fn sqlx_pool(url: &str) -> PgPool {
    let options: PgConnectOptions = url.parse().unwrap();
    PgPoolOptions::new()
        .max_connections(16)
        .connect_lazy_with(options.statement_cache_capacity(1_024))
}

/// Defines one test for each named backend: `on_backends! { World: the_main_path, on_memory Memory, on_sqlite Sqlite }`
/// calls `the_main_path(World::on(Backend::Memory))` in the test `the_main_path::on_memory`, and so on.
#[macro_export]
macro_rules! on_backends {
    ($world:path: $test:ident, $($name:ident $backend:ident),+ $(,)?) => {
        mod $test {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    let world = <$world>::on($crate::Backend::$backend).await;
                    super::$test(world).await;
                }
            )+
        }
    };
}
