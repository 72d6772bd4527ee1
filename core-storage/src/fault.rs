//! An engine that fails when told to, to see what others make of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use async_trait::async_trait;
use core_domain::kernel::Timestamp;
use core_domain::port::{Direction, Mode, StoreError};

use crate::filter::Filter;
use crate::guarded::Guarded;
use crate::query::Select;
use crate::row_store::{RowStore, RowTx};
use crate::table::Table;
use crate::value::{Row, Value};

/// Wraps an engine and fails one call, counted over all its units: `begin`, every call of a unit, `commit`.
#[derive(Clone, Debug)]
pub struct FaultStore {
    inner: Arc<dyn RowStore>,
    calls_left: Arc<AtomicI64>,
}

impl FaultStore {
    /// Wraps the engine; nothing fails yet.
    #[must_use]
    pub fn new(inner: Arc<dyn RowStore>) -> Self {
        Self {
            inner,
            calls_left: Arc::new(AtomicI64::new(i64::MAX)),
        }
    }

    /// Makes the `n`-th call from now fail, the next one being the first.
    pub fn fail_call(&self, n: u32) {
        self.calls_left.store(i64::from(n), Ordering::SeqCst);
    }

    /// Tells whether the call that was to fail has failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.calls_left.load(Ordering::SeqCst) <= 0
    }

    fn call(&self) -> Result<(), StoreError> {
        match self.calls_left.fetch_sub(1, Ordering::SeqCst) {
            1 => Err(StoreError::Unavailable("a fault was injected".into())),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl RowStore for FaultStore {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        self.call()?;
        let tx = FaultTx {
            inner: self.inner.begin(mode).await?,
            store: self.clone(),
        };
        Ok(Guarded::wrap(Box::new(tx), mode))
    }
}

struct FaultTx {
    inner: Box<dyn RowTx>,
    store: FaultStore,
}

#[async_trait]
impl RowTx for FaultTx {
    async fn insert(&mut self, table: &'static Table, row: Row) -> Result<(), StoreError> {
        self.store.call()?;
        self.inner.insert(table, row).await
    }

    async fn update(
        &mut self,
        table: &'static Table,
        filter: &Filter,
        set: &[(&'static str, Value)],
    ) -> Result<u64, StoreError> {
        self.store.call()?;
        self.inner.update(table, filter, set).await
    }

    async fn delete(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError> {
        self.store.call()?;
        self.inner.delete(table, filter).await
    }

    async fn select(&mut self, select: &Select) -> Result<Vec<Row>, StoreError> {
        self.store.call()?;
        self.inner.select(select).await
    }

    async fn claim(&mut self, select: &Select) -> Result<Vec<Row>, StoreError> {
        self.store.call()?;
        self.inner.claim(select).await
    }

    async fn count(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError> {
        self.store.call()?;
        self.inner.count(table, filter).await
    }

    async fn sum(
        &mut self,
        table: &'static Table,
        column: &'static str,
        group: &'static str,
        filter: &Filter,
    ) -> Result<Vec<(Value, i64)>, StoreError> {
        self.store.call()?;
        self.inner.sum(table, column, group, filter).await
    }

    async fn walk(
        &mut self,
        table: &'static Table,
        key: &str,
        direction: Direction,
        depth: u32,
    ) -> Result<Vec<Row>, StoreError> {
        self.store.call()?;
        self.inner.walk(table, key, direction, depth).await
    }

    async fn now(&mut self) -> Result<Timestamp, StoreError> {
        self.store.call()?;
        self.inner.now().await
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        if let Err(error) = self.store.call() {
            self.inner.rollback().await;
            return Err(error);
        }
        self.inner.commit().await
    }

    async fn rollback(self: Box<Self>) {
        self.inner.rollback().await;
    }
}
