//! The stores that tests run on.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use core_domain::kernel::StoreError;
use core_domain::port::{Mode, Store, UnitOfWork};
use core_domain::testing::ManualClock;
use core_sqlx::SqlxConfig;
use core_sqlx::sqlx::PgPool;
use core_sqlx::sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use core_storage::fault::FaultStore;
use core_storage::{RecordStore, RowStore, memory, postgres, sqlite, testing};

use super::Rng;

const KEY: [u8; 32] = [7; 32];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Backend {
    Memory,
    Sqlite,
    Postgres,
    /// Postgres, on a pool of sqlx.
    Sqlx,
}

/// Resources that must live as long as a store is used.
pub(crate) type StoreGuard = Box<dyn Any + Send + Sync>;

impl Backend {
    pub(crate) async fn open(self, clock: Arc<ManualClock>) -> (Arc<dyn Store>, StoreGuard) {
        let (rows, keeps) = self.rows(clock).await;
        (over(rows), keeps)
    }

    /// Opens a store that can inject failures.
    pub(super) async fn open_faulty(
        self,
        clock: Arc<ManualClock>,
    ) -> ((Arc<dyn Store>, StoreGuard), FaultStore) {
        let (rows, keeps) = self.rows(clock).await;
        let faults = FaultStore::new(rows);
        ((over(Arc::new(faults.clone())), keeps), faults)
    }

    async fn rows(self, clock: Arc<ManualClock>) -> (Arc<dyn RowStore>, StoreGuard) {
        match self {
            Self::Memory => (memory::rows(clock), Box::new(())),
            Self::Sqlite => {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("core.db");
                let mut config = sqlite::SqliteConfig::new(path, clock, KEY);
                config.synchronous = sqlite::Synchronous::Normal;
                (sqlite::rows(config, &[]).await.unwrap(), Box::new(folder))
            }
            Self::Postgres => {
                let database = testing::postgres().await;
                let mut config = postgres::PostgresConfig::new(&database.url, KEY);
                config.clock = Some(clock);
                (
                    postgres::rows(config, &[]).await.unwrap(),
                    Box::new(database),
                )
            }
            Self::Sqlx => {
                let database = testing::postgres().await;
                let mut config = SqlxConfig::new(sqlx_pool(&database.url), KEY);
                config.clock = Some(clock);
                let rows = core_sqlx::rows(config, &[]).await.unwrap();
                (rows, Box::new(database))
            }
        }
    }
}

/// Opens a pool as a host program does.
pub(crate) fn sqlx_pool(url: &str) -> PgPool {
    let options: PgConnectOptions = url.parse().unwrap();
    PgPoolOptions::new()
        .max_connections(16)
        .connect_lazy_with(options.statement_cache_capacity(1_024))
}

fn over(rows: Arc<dyn RowStore>) -> Arc<dyn Store> {
    Arc::new(RecordStore::new(rows, KEY))
}

/// Opens an in-memory store that can inject failures, and one over the same rows without failures.
pub(crate) fn faulty(clock: Arc<ManualClock>) -> (Arc<dyn Store>, FaultStore, Arc<dyn Store>) {
    let rows = memory::rows(clock);
    let faults = FaultStore::new(Arc::clone(&rows));
    (over(Arc::new(faults.clone())), faults, over(rows))
}

/// A store that fails after a number of units of work, like a process that has died.
#[derive(Debug)]
pub(crate) struct DyingStore {
    inner: Arc<dyn Store>,
    units_left: AtomicI64,
}

impl DyingStore {
    pub(crate) fn after(units: i64, inner: Arc<dyn Store>) -> Arc<dyn Store> {
        Arc::new(Self {
            inner,
            units_left: AtomicI64::new(units),
        })
    }
}

#[async_trait]
impl Store for DyingStore {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError> {
        if self.units_left.fetch_sub(1, Ordering::SeqCst) <= 0 {
            return Err(StoreError::unavailable("the process is dead"));
        }
        self.inner.begin(mode).await
    }

    async fn back_off(&self, run: u32) {
        self.inner.back_off(run).await;
    }
}

/// A store that lets other tasks run before each unit of work.
#[derive(Debug)]
pub(crate) struct YieldingStore {
    pub(crate) inner: Arc<dyn Store>,
    pub(crate) rng: Rng,
}

#[async_trait]
impl Store for YieldingStore {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError> {
        self.rng.pause(2).await;
        self.inner.begin(mode).await
    }

    /// Waits no real time: the order of events depends on the seed alone.
    async fn back_off(&self, _: u32) {
        self.rng.pause(2).await;
    }
}

/// Runs the same test on every store: `on_every_store! { World: the_main_path }` for an `async fn the_main_path(world:
/// World)`.
macro_rules! on_every_store {
    ($world:ident: $($test:ident),+ $(,)?) => {$(
        mod $test {
            use crate::world::{Backend, $world};

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_memory() {
                super::$test($world::on(Backend::Memory).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_sqlite() {
                super::$test($world::on(Backend::Sqlite).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_postgres() {
                super::$test($world::on(Backend::Postgres).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn on_sqlx() {
                super::$test($world::on(Backend::Sqlx).await).await;
            }
        }
    )+};
}
pub(crate) use on_every_store;
