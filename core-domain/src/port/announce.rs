//! Telling the rest of the process what follows from a commit, by construction: nobody has to remember it.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Mode, Repositories, Store, UnitOfWork};
use crate::access::RecordKey;
use crate::kernel::{Effects, StoreError, Timestamp};

/// Told what follows from every commit, before anybody is answered. A hint only: a process can die before it is told, so
/// whoever waits also polls, and what is remembered is remembered for a moment only.
pub trait CommitListener: Send + Sync + std::fmt::Debug {
    /// A unit of work was committed, or may have been because its answer was lost, and this follows. Never called with
    /// nothing.
    fn committed(&self, effects: &Effects);

    /// A unit of work is about to be committed, and this will follow if it is. Whoever then asks for a turn to write, on a
    /// store whose units run one after the other, gets it when that unit is over, and may share its commit. Never called
    /// with nothing.
    fn committing(&self, effects: &Effects) {
        let _ = effects;
    }
}

/// A store that tells a listener what follows from each commit.
#[derive(Clone, Debug)]
pub struct AnnouncingStore {
    store: Arc<dyn Store>,
    listener: Arc<dyn CommitListener>,
}

impl AnnouncingStore {
    /// Tells the listener of the commits of this store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, listener: Arc<dyn CommitListener>) -> Self {
        Self { store, listener }
    }
}

#[async_trait]
impl Store for AnnouncingStore {
    async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError> {
        let unit = self.store.begin(mode).await?;
        if matches!(mode, Mode::Auto | Mode::Read) {
            return Ok(unit);
        }
        Ok(Box::new(AnnouncingUnit {
            unit,
            listener: Arc::clone(&self.listener),
        }))
    }

    async fn back_off(&self, run: u32) {
        self.store.back_off(run).await;
    }
}

struct AnnouncingUnit {
    unit: Box<dyn UnitOfWork>,
    listener: Arc<dyn CommitListener>,
}

#[async_trait]
impl UnitOfWork for AnnouncingUnit {
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
        let Self { mut unit, listener } = *self;
        let effects = unit.effects().clone();
        if !effects.is_empty() {
            listener.committing(&effects);
        }
        let outcome = unit.commit().await;
        let may_be_applied = match &outcome {
            Ok(_) => true,
            Err(error) => !error.certainly_not_applied(),
        };
        if may_be_applied && !effects.is_empty() {
            listener.committed(&effects);
        }
        outcome
    }

    async fn rollback(self: Box<Self>) {
        self.unit.rollback().await;
    }
}
