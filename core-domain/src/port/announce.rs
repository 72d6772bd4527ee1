//! Announces the effects of every commit to the rest of the process, so that use cases cannot forget to do so.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{CellState, HostStatements, Mode, PoolState, Repositories, Store, UnitOfWork};
use crate::access::RecordKey;
use crate::kernel::{Effects, StoreError, Timestamp};

/// The rest of a commit whose caller was dropped, including the announcement of its effects.
pub type DetachedCommit = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A commit in progress.
type UnitCommit = Pin<Box<dyn Future<Output = Result<Effects, StoreError>> + Send>>;

/// Receives the effects of every commit before the caller gets the result. The announcement is only a hint, because a
/// process can die before it. Receivers must also poll, and may cache data only for a short time.
pub trait CommitListener: Send + Sync + std::fmt::Debug {
    /// Announces the effects of a unit of work that was committed, or that may have been committed because the result
    /// of the commit is unknown. Never called without effects.
    fn on_committed(&self, effects: &Effects);

    /// Announces the effects of a unit of work that is about to be committed. The commit can still fail. On a store
    /// that runs write units one after the other, a unit that is begun now runs directly after this commit and may
    /// share it. Never called without effects.
    fn on_committing(&self, effects: &Effects) {
        let _ = effects;
    }

    /// Runs the rest of a commit whose caller was dropped, for example because a client disconnected. A listener with a
    /// runtime spawns it. A listener that drops it aborts the commit; the store may still apply such a commit, without
    /// an announcement.
    fn run_detached(&self, rest: DetachedCommit) {
        drop(rest);
    }
}

/// A store that announces the effects of each commit to a listener.
#[derive(Clone, Debug)]
pub struct AnnouncingStore {
    store: Arc<dyn Store>,
    listener: Arc<dyn CommitListener>,
}

impl AnnouncingStore {
    /// Creates a store that announces the commits of `store` to `listener`.
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

    async fn begin_stale(&self) -> Option<Box<dyn UnitOfWork>> {
        self.store.begin_stale().await
    }

    async fn back_off(&self, run: u32) {
        self.store.back_off(run).await;
    }

    async fn check(&self) -> Result<(), StoreError> {
        self.store.check().await
    }

    fn uptime(&self) -> Duration {
        self.store.uptime()
    }

    fn retry_timeout(&self) -> Duration {
        self.store.retry_timeout()
    }

    fn pools(&self) -> Vec<PoolState> {
        self.store.pools()
    }

    fn cells(&self) -> Vec<CellState> {
        self.store.cells()
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

    async fn enlist(&mut self, statements: &mut dyn HostStatements) -> Result<(), StoreError> {
        self.unit.enlist(statements).await
    }

    async fn commit(self: Box<Self>) -> Result<Effects, StoreError> {
        let Self { mut unit, listener } = *self;
        let effects = unit.effects().clone();
        if !effects.is_empty() {
            listener.on_committing(&effects);
        }
        let mut commit = Commit {
            pending: Some(unit.commit()),
            listener,
            effects,
        };
        commit.finish().await
    }

    async fn rollback(self: Box<Self>) {
        self.unit.rollback().await;
    }
}

/// A commit in progress. Once it has begun, it runs to its end and is announced even if its caller is dropped, because
/// the store may apply it in any case.
struct Commit {
    /// `None` after the end of the commit.
    pending: Option<UnitCommit>,
    listener: Arc<dyn CommitListener>,
    effects: Effects,
}

impl Commit {
    async fn finish(&mut self) -> Result<Effects, StoreError> {
        let Some(rest) = &mut self.pending else {
            return Err(StoreError::backend("a finished commit was polled again"));
        };
        let outcome = poll_fn(|context| rest.as_mut().poll(context)).await;
        self.pending = None;
        announce(self.listener.as_ref(), &self.effects, &outcome);
        outcome
    }
}

impl Drop for Commit {
    fn drop(&mut self) {
        let Some(rest) = self.pending.take() else {
            return;
        };
        let (listener, effects) = (
            Arc::clone(&self.listener),
            std::mem::take(&mut self.effects),
        );
        self.listener.run_detached(Box::pin(async move {
            let outcome = rest.await;
            announce(listener.as_ref(), &effects, &outcome);
        }));
    }
}

/// Announces the effects of a commit that was applied or may have been applied.
fn announce(
    listener: &dyn CommitListener,
    effects: &Effects,
    outcome: &Result<Effects, StoreError>,
) {
    let may_be_applied = match outcome {
        Ok(_) => true,
        Err(error) => !error.is_certainly_not_applied(),
    };
    if may_be_applied && !effects.is_empty() {
        listener.on_committed(effects);
    }
}
