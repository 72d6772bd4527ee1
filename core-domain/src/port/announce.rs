//! Telling the rest of the process what follows from a commit, by construction: nobody has to remember it.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{HostStatements, Mode, Repositories, Store, UnitOfWork};
use crate::access::RecordKey;
use crate::kernel::{Effects, StoreError, Timestamp};

/// The rest of a commit whose caller was dropped, and the announcement of what follows from it.
pub type CommitRest = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A commit of a unit that is in progress.
type UnitCommit = Pin<Box<dyn Future<Output = Result<Effects, StoreError>> + Send>>;

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

    /// Runs the rest of a commit whose caller was dropped, such as a request whose client has disconnected. A listener with a
    /// runtime spawns it. A listener that drops it cuts the commit off; the store may apply such a commit without an
    /// announcement.
    fn run_rest(&self, rest: CommitRest) {
        drop(rest);
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

    async fn check(&self) -> Result<(), StoreError> {
        self.store.check().await
    }

    fn uptime(&self) -> Duration {
        self.store.uptime()
    }

    fn retry_timeout(&self) -> Duration {
        self.store.retry_timeout()
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
            listener.committing(&effects);
        }
        let mut commit = Commit {
            rest: Some(unit.commit()),
            listener,
            effects,
        };
        commit.finish().await
    }

    async fn rollback(self: Box<Self>) {
        self.unit.rollback().await;
    }
}

/// A commit in progress. Once it has begun it is run to its end and announced, whether its caller waits or not: the store may
/// apply it all the same.
struct Commit {
    /// `None` once it has ended.
    rest: Option<UnitCommit>,
    listener: Arc<dyn CommitListener>,
    effects: Effects,
}

impl Commit {
    async fn finish(&mut self) -> Result<Effects, StoreError> {
        let Some(rest) = &mut self.rest else {
            return Err(StoreError::backend(
                "a commit that has ended was polled again",
            ));
        };
        let outcome = poll_fn(|context| rest.as_mut().poll(context)).await;
        self.rest = None;
        announce(self.listener.as_ref(), &self.effects, &outcome);
        outcome
    }
}

impl Drop for Commit {
    fn drop(&mut self) {
        let Some(rest) = self.rest.take() else {
            return;
        };
        let (listener, effects) = (
            Arc::clone(&self.listener),
            std::mem::take(&mut self.effects),
        );
        self.listener.run_rest(Box::pin(async move {
            let outcome = rest.await;
            announce(listener.as_ref(), &effects, &outcome);
        }));
    }
}

/// Announces what follows from a commit that was applied, or may have been.
fn announce(
    listener: &dyn CommitListener,
    effects: &Effects,
    outcome: &Result<Effects, StoreError>,
) {
    let may_be_applied = match outcome {
        Ok(_) => true,
        Err(error) => !error.certainly_not_applied(),
    };
    if may_be_applied && !effects.is_empty() {
        listener.committed(effects);
    }
}
