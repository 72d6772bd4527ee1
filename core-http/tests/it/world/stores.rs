//! The stores that tests run on.

use std::any::Any;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

use async_trait::async_trait;
use core_domain::kernel::StoreError;
use core_domain::port::{Mode, Store, UnitOfWork};
use core_domain::testing::ManualClock;
use core_sqlx::SqlxConfig;
use core_sqlx::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use core_storage::fault::FaultStore;
use core_storage::memory::MemoryRows;
use core_storage::{CursorKey, RecordStore, RowStore, postgres, sqlite, testing};

const KEY: [u8; 32] = [7; 32];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Memory,
    Sqlite,
    Postgres,
    /// Postgres, on a pool of sqlx.
    Sqlx,
}

/// The location of the rows.
#[derive(Clone, Debug)]
pub(crate) enum StoreLocation {
    Process(Arc<MemoryRows>),
    File(PathBuf),
    Database(String),
}

impl StoreLocation {
    /// Removes the guards of the database that keep append-only rows unchanged.
    pub(crate) async fn drop_guards(&self) {
        match self {
            Self::Process(_) => {}
            Self::File(path) => testing::drop_sqlite_guards(path).unwrap(),
            Self::Database(url) => {
                let database = testing::connect(url).await;
                testing::drop_postgres_guards(&database).await.unwrap();
            }
        }
    }
}

/// An open store, and everything that must live as long as the store.
pub(crate) struct OpenStore {
    pub(crate) store: Arc<dyn Store>,
    /// The rows below `store`, for changes that no use case makes.
    pub(crate) rows: Arc<dyn RowStore>,
    pub(crate) place: StoreLocation,
    /// The resources of the store, such as a temporary folder. They are freed on drop.
    pub(crate) resources: Box<dyn Any + Send + Sync>,
}

impl OpenStore {
    fn over(rows: Arc<dyn RowStore>, place: StoreLocation, keeps: impl Any + Send + Sync) -> Self {
        let store = RecordStore::new(Arc::clone(&rows), CursorKey::from(KEY));
        Self {
            store: Arc::new(store),
            rows,
            place,
            resources: Box::new(keeps),
        }
    }
}

impl Backend {
    pub(crate) async fn open(self, clock: Arc<ManualClock>) -> OpenStore {
        match self {
            Self::Memory => in_memory(clock),
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
                OpenStore::over(
                    rows,
                    StoreLocation::Database(database.url.clone()),
                    database,
                )
            }
            Self::Sqlx => {
                let database = testing::postgres().await;
                let options: PgConnectOptions = database.url.parse().unwrap();
                let pool = PgPoolOptions::new()
                    .max_connections(16)
                    .connect_lazy_with(options.statement_cache_capacity(1_024));
                let mut config = SqlxConfig::new(pool, KEY);
                config.clock = Some(clock);
                let rows = core_sqlx::rows(config, &[]).await.unwrap();
                OpenStore::over(
                    rows,
                    StoreLocation::Database(database.url.clone()),
                    database,
                )
            }
        }
    }
}

pub(crate) fn in_memory(clock: Arc<ManualClock>) -> OpenStore {
    over_memory(MemoryRows::new(clock))
}

/// Opens a store over rows in memory.
pub(crate) fn over_memory(rows: Arc<MemoryRows>) -> OpenStore {
    OpenStore::over(Arc::clone(&rows) as _, StoreLocation::Process(rows), ())
}

/// Returns an in-memory store that fails on demand, and the handle that makes it fail.
pub(crate) fn faulty(clock: Arc<ManualClock>) -> (OpenStore, FaultStore) {
    let rows = MemoryRows::new(clock);
    let faults = FaultStore::new(Arc::clone(&rows) as _);
    let opened = OpenStore::over(Arc::new(faults.clone()), StoreLocation::Process(rows), ());
    (opened, faults)
}

/// A store that can be replaced by an empty one, because building the services takes longer than most tests. It also
/// counts the units of work that can write.
#[derive(Debug)]
pub(crate) struct ExchangeableStore {
    current: RwLock<Arc<dyn Store>>,
    write_units: AtomicUsize,
}

impl ExchangeableStore {
    pub(crate) fn new(store: Arc<dyn Store>) -> Arc<Self> {
        Arc::new(Self {
            current: RwLock::new(store),
            write_units: AtomicUsize::new(0),
        })
    }

    pub(crate) fn exchange(&self, store: Arc<dyn Store>) {
        *self.current.write().unwrap() = store;
    }

    /// Returns the number of units of work begun so far that can write.
    pub(crate) fn write_units(&self) -> usize {
        self.write_units.load(Ordering::Relaxed)
    }

    fn current(&self) -> Arc<dyn Store> {
        Arc::clone(&self.current.read().unwrap())
    }
}

#[async_trait]
impl Store for ExchangeableStore {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError> {
        if matches!(mode, Mode::Write | Mode::ReadCommitted) {
            self.write_units.fetch_add(1, Ordering::Relaxed);
        }
        self.current().begin(mode).await
    }

    async fn back_off(&self, run: u32) {
        self.current().back_off(run).await;
    }
}

/// Runs a test on memory, SQLite and Postgres. `on_every_store! { main_path }` needs an `async fn main_path(world: World)`.
///
/// To save time it does not run on sqlx: the model tests, the conformance suite and the whole-suite tests do.
macro_rules! on_every_store {
    ($($test:ident),+ $(,)?) => {$(
        mod $test {
            use crate::world::{Backend, World};

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_memory() {
                super::$test(World::on(Backend::Memory).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_sqlite() {
                super::$test(World::on(Backend::Sqlite).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_postgres() {
                super::$test(World::on(Backend::Postgres).await).await;
            }
        }
    )+};
}
pub(crate) use on_every_store;
