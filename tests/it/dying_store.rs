//! A process that dies.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use core_domain::port::{Mode, Store, StoreError, UnitOfWork};

/// A store that a process can reach for so many more units, and then no more.
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
            return Err(StoreError::Unavailable("the process is dead".into()));
        }
        self.inner.begin(mode).await
    }
}
