//! Fault injection: an engine wrapper that makes calls fail.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::{StoreError, Timestamp};
use core_domain::port::{CellState, Direction, HostStatements, Mode, PoolState, StatementTime};

use crate::checked_tx::CheckedTx;
use crate::filter::Filter;
use crate::join::{Join, VisitJoined};
use crate::query::Select;
use crate::row_store::{
    GroupSum, PreparedUnit, RecordedRows, Replacement, RowStore, RowTx, UnitEnd,
};
use crate::table::Table;
use crate::value::{Row, Value, Visit};

/// An engine wrapper that makes one chosen call fail, or calls at random. Calls are counted over all units: `begin`,
/// every call of a unit, and `commit`. A commit that fails at random fails before or after it takes effect, and its
/// error does not tell which. The wrapper records the queries and counts that it runs.
#[derive(Clone, Debug)]
pub struct FaultStore {
    inner: Arc<dyn RowStore>,
    calls_left: Arc<AtomicI64>,
    /// True if the calls after the chosen one fail as well.
    goes_down: Arc<AtomicBool>,
    commits_left: Arc<AtomicI64>,
    rng: Arc<Mutex<FaultRng>>,
    queries: Arc<Mutex<Vec<Select>>>,
    counts: Arc<Mutex<Vec<Select>>>,
    has_commit_numbers: bool,
}

/// Chooses the calls that fail: one in `one_in`, or none if `one_in` is 0.
#[derive(Debug, Default)]
struct FaultRng {
    state: u64,
    one_in: u64,
}

impl FaultRng {
    /// Returns the next number below `below` (SplitMix64). The sequence depends only on the seed. The modulo bias does
    /// not matter here.
    fn next(&mut self, below: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below.max(1)
    }

    fn fails(&mut self) -> bool {
        self.one_in > 0 && self.next(self.one_in) == 0
    }
}

impl FaultStore {
    /// Wraps the engine. No call fails until one is chosen.
    #[must_use]
    pub fn new(inner: Arc<dyn RowStore>) -> Self {
        Self {
            inner,
            calls_left: Arc::new(AtomicI64::new(i64::MAX)),
            goes_down: Arc::default(),
            commits_left: Arc::new(AtomicI64::new(i64::MAX)),
            rng: Arc::default(),
            queries: Arc::default(),
            counts: Arc::default(),
            has_commit_numbers: true,
        }
    }

    /// Behaves like an engine on which other processes commit, see [`RowTx::commit_number`].
    #[must_use]
    pub fn without_commit_numbers(mut self) -> Self {
        self.has_commit_numbers = false;
        self
    }

    /// Returns the queries since the last call of this method, in order.
    #[must_use]
    pub fn take_queries(&self) -> Vec<Select> {
        take(&self.queries)
    }

    /// Returns the queries whose rows were counted since the last call of this method, in order.
    #[must_use]
    pub fn take_counts(&self) -> Vec<Select> {
        take(&self.counts)
    }

    /// From now on makes one call in `one_in` fail; 0 makes none fail. The same seed and the same calls give the same
    /// failures.
    pub fn inject_random(&self, seed: u64, one_in: u64) {
        *self.rng() = FaultRng {
            state: seed,
            one_in,
        };
    }

    fn rng(&self) -> MutexGuard<'_, FaultRng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the `n`-th call from now fail. The next call is number 1.
    pub fn fail_call(&self, n: u32) {
        self.goes_down.store(false, Ordering::SeqCst);
        self.calls_left.store(i64::from(n), Ordering::SeqCst);
    }

    /// Makes the `n`-th call from now and all later calls fail, as if the process had died. The next call is number 1.
    pub fn fail_from_call(&self, n: u32) {
        self.calls_left.store(i64::from(n), Ordering::SeqCst);
        self.goes_down.store(true, Ordering::SeqCst);
    }

    /// Loses the reply to the `n`-th commit from now: the commit takes effect and returns an error. The next commit is
    /// number 1.
    pub fn lose_reply(&self, n: u32) {
        self.commits_left.store(i64::from(n), Ordering::SeqCst);
    }

    /// Returns whether the reply chosen with [`FaultStore::lose_reply`] was lost.
    #[must_use]
    pub fn has_lost_reply(&self) -> bool {
        self.commits_left.load(Ordering::SeqCst) <= 0
    }

    /// Returns whether the call chosen with [`FaultStore::fail_call`] has failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.calls_left.load(Ordering::SeqCst) <= 0
    }

    fn wrap(&self, inner: Box<dyn RowTx>, mode: Mode) -> Box<dyn RowTx> {
        let store = self.clone();
        CheckedTx::wrap(Box::new(FaultTx { inner, store }), mode)
    }

    /// Fails if the next call and all others after it fail. Is not counted as a call, because stores also ask in the background.
    fn ensure_up(&self) -> Result<(), StoreError> {
        let is_down = self.goes_down.load(Ordering::SeqCst);
        if !is_down || self.calls_left.load(Ordering::SeqCst) > 1 {
            return Ok(());
        }
        self.calls_left.fetch_min(0, Ordering::SeqCst);
        Err(injected_error())
    }

    fn call(&self) -> Result<(), StoreError> {
        match self.calls_left.fetch_sub(1, Ordering::SeqCst) {
            1 => Err(injected_error()),
            ..=0 if self.goes_down.load(Ordering::SeqCst) => Err(injected_error()),
            _ if self.rng().fails() => Err(injected_error()),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl RowStore for FaultStore {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        self.call()?;
        Ok(self.wrap(self.inner.begin(mode).await?, mode))
    }

    fn pools(&self) -> Vec<PoolState> {
        self.inner.pools()
    }

    fn cells(&self) -> Vec<CellState> {
        self.inner.cells()
    }

    fn has_one_writer(&self) -> bool {
        self.inner.has_one_writer()
    }

    fn has_gate(&self) -> bool {
        self.inner.has_gate()
    }

    async fn begin_gated(&self, mode: Mode) -> Result<Box<dyn RowTx>, StoreError> {
        self.call()?;
        let inner = self.inner.begin_gated(mode).await?;
        Ok(self.wrap(inner, mode))
    }

    async fn prepared_units(&self, prefix: &str) -> Result<Vec<PreparedUnit>, StoreError> {
        self.ensure_up()?;
        self.inner.prepared_units(prefix).await
    }

    async fn end_prepared(&self, name: &str, end: UnitEnd) -> Result<(), StoreError> {
        self.call()?;
        self.inner.end_prepared(name, end).await
    }
}

fn lock(selects: &Mutex<Vec<Select>>) -> MutexGuard<'_, Vec<Select>> {
    selects.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take(selects: &Mutex<Vec<Select>>) -> Vec<Select> {
    std::mem::take(&mut *lock(selects))
}

const INJECTED: &str = "a fault was injected";

fn injected_error() -> StoreError {
    StoreError::unavailable(INJECTED)
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

    async fn insert_many(
        &mut self,
        table: &'static Table,
        rows: Vec<Row>,
    ) -> Result<(), StoreError> {
        self.store.call()?;
        self.inner.insert_many(table, rows).await
    }

    async fn append(&mut self, table: &'static Table, rows: Vec<Row>) -> Result<(), StoreError> {
        self.store.call()?;
        self.inner.append(table, rows).await
    }

    async fn replace_many(
        &mut self,
        table: &'static Table,
        rows: Vec<Replacement>,
    ) -> Result<(), StoreError> {
        self.store.call()?;
        self.inner.replace_many(table, rows).await
    }

    async fn lock(
        &mut self,
        table: &'static Table,
        key: &Value,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        self.store.call()?;
        self.inner.lock(table, key, visit).await
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

    async fn promote(
        &mut self,
        from: &'static Table,
        to: &'static Table,
        keys: &[Value],
    ) -> Result<u64, StoreError> {
        self.store.call()?;
        self.inner.promote(from, to, keys).await
    }

    async fn get(
        &mut self,
        table: &'static Table,
        key: &str,
        filter: &Filter,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        self.store.call()?;
        self.inner.get(table, key, filter, visit).await
    }

    fn commit_number(&self, table: &'static Table, platform: Option<&str>) -> Option<u64> {
        if !self.store.has_commit_numbers {
            return None;
        }
        self.inner.commit_number(table, platform)
    }

    async fn select(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError> {
        self.store.call()?;
        lock(&self.store.queries).push(select.clone());
        self.inner.select(select, visit).await
    }

    async fn select_joined(
        &mut self,
        select: &Select,
        joins: &'static [Join],
        visit: VisitJoined<'_>,
    ) -> Result<(), StoreError> {
        self.store.call()?;
        self.inner.select_joined(select, joins, visit).await
    }

    async fn claim(&mut self, select: &Select, visit: Visit<'_>) -> Result<(), StoreError> {
        self.store.call()?;
        self.inner.claim(select, visit).await
    }

    async fn count(&mut self, table: &'static Table, filter: &Filter) -> Result<u64, StoreError> {
        self.store.call()?;
        lock(&self.store.counts).push(Select::of(table).filter(filter.clone()));
        self.inner.count(table, filter).await
    }

    async fn remove_archived(
        &mut self,
        table: &'static Table,
        keys: &[Value],
    ) -> Result<u64, StoreError> {
        self.store.call()?;
        self.inner.remove_archived(table, keys).await
    }

    async fn sum(
        &mut self,
        table: &'static Table,
        column: &'static str,
        groups: &[&'static str],
        filter: &Filter,
    ) -> Result<Vec<GroupSum>, StoreError> {
        self.store.call()?;
        self.inner.sum(table, column, groups, filter).await
    }

    async fn walk(
        &mut self,
        table: &'static Table,
        key: &str,
        direction: Direction,
        depth: u32,
        filter: &Filter,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        self.store.call()?;
        self.inner
            .walk(table, key, direction, depth, filter, visit)
            .await
    }

    async fn now(&mut self) -> Result<Timestamp, StoreError> {
        self.store.call()?;
        self.inner.now().await
    }

    fn take_slowest_statements(&mut self) -> Vec<StatementTime> {
        self.inner.take_slowest_statements()
    }

    async fn enlist(&mut self, statements: &mut dyn HostStatements) -> Result<(), StoreError> {
        self.store.call()?;
        self.inner.enlist(statements).await
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        if self.store.commits_left.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.inner.commit().await?;
            return Err(StoreError::commit_unknown(INJECTED));
        }
        if self.store.call().is_ok() {
            return self.inner.commit().await;
        }
        let lost_reply = self.store.rng().one_in > 0 && self.store.rng().next(2) == 0;
        if lost_reply {
            self.inner.commit().await?;
        } else {
            self.inner.rollback().await;
        }
        Err(StoreError::commit_unknown(INJECTED))
    }

    async fn remove_moved(
        &mut self,
        table: &'static Table,
        keys: &[Value],
    ) -> Result<u64, StoreError> {
        self.store.call()?;
        self.inner.remove_moved(table, keys).await
    }

    async fn close_gate(&mut self, max_wait: Duration) -> Result<(), StoreError> {
        self.store.call()?;
        self.inner.close_gate(max_wait).await
    }

    async fn set_recording(
        &mut self,
        rows: &RecordedRows<'_>,
        is_on: bool,
        max_wait: Duration,
    ) -> Result<bool, StoreError> {
        self.store.call()?;
        self.inner.set_recording(rows, is_on, max_wait).await
    }

    async fn prepare(self: Box<Self>, name: &str) -> Result<(), StoreError> {
        if let Err(error) = self.store.call() {
            self.inner.rollback().await;
            return Err(error);
        }
        self.inner.prepare(name).await
    }

    async fn rollback(self: Box<Self>) {
        self.inner.rollback().await;
    }
}
