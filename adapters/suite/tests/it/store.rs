//! An in-memory store whose commits can fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use async_trait::async_trait;
use core_domain::kernel::{Clock, Effects, StoreError, Timestamp};
use core_domain::port::{Mode, Repositories, Store, UnitOfWork};
use core_domain::testing::{ManualClock, RecordKey};
use core_storage::memory::{MemoryConfig, open};

/// The outcome of commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Commits {
    Applied,
    AppliedButAnswerLost,
    Aborted,
}

#[derive(Clone, Debug)]
pub(crate) struct LossyStore {
    store: Arc<dyn Store>,
    commits: Arc<AtomicU8>,
}

impl LossyStore {
    pub(crate) fn new() -> Self {
        let clock: Arc<dyn Clock> =
            Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
        let cursor_key = [1; 32].into();
        Self {
            store: open(MemoryConfig { clock, cursor_key }),
            commits: Arc::new(AtomicU8::new(Commits::Applied as u8)),
        }
    }

    /// Sets the outcome of all following commits.
    pub(crate) fn commits(&self, end: Commits) {
        self.commits.store(end as u8, Ordering::SeqCst);
    }
}

#[async_trait]
impl Store for LossyStore {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError> {
        Ok(Box::new(LossyUnit {
            unit: self.store.begin(mode).await?,
            commits: Arc::clone(&self.commits),
        }))
    }

    async fn back_off(&self, run: u32) {
        self.store.back_off(run).await;
    }
}

struct LossyUnit {
    unit: Box<dyn UnitOfWork>,
    commits: Arc<AtomicU8>,
}

#[async_trait]
impl UnitOfWork for LossyUnit {
    async fn now(&mut self) -> Result<Timestamp, StoreError> {
        self.unit.now().await
    }

    fn effects(&mut self) -> &mut Effects {
        self.unit.effects()
    }

    fn repositories(&mut self, key: RecordKey) -> &mut dyn Repositories {
        self.unit.repositories(key)
    }

    async fn commit(self: Box<Self>) -> Result<Effects, StoreError> {
        let end = self.commits.load(Ordering::SeqCst);
        if end == Commits::Aborted as u8 {
            self.unit.rollback().await;
            return Err(StoreError::unavailable("the disk is full"));
        }
        let effects = self.unit.commit().await?;
        if end == Commits::AppliedButAnswerLost as u8 {
            return Err(StoreError::commit_unknown("the connection was lost"));
        }
        Ok(effects)
    }

    async fn rollback(self: Box<Self>) {
        self.unit.rollback().await;
    }
}
