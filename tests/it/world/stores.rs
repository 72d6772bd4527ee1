//! Stores that fail or yield, and tests that run on several stores.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use core_domain::kernel::StoreError;
use core_domain::port::{Mode, Store, UnitOfWork};

use super::Rng;

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
        core_testkit::on_backends! {
            crate::world::$world: $test,
            on_memory Memory, on_sqlite Sqlite, on_postgres Postgres, on_sqlx Sqlx, on_cells Cells
        }
    )+};
}
pub(crate) use on_every_store;
