//! A store that can be replaced during a test, and tests that run on several stores.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock};

use async_trait::async_trait;
use core_domain::kernel::StoreError;
use core_domain::port::{Mode, Store, UnitOfWork};

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
        core_testkit::on_backends! {
            crate::world::World: $test,
            on_memory Memory, on_sqlite Sqlite, on_postgres Postgres, on_cells Cells
        }
    )+};
}
pub(crate) use on_every_store;
