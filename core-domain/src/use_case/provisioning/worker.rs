//! A worker, and what it works with.

use std::sync::Arc;
use std::time::Duration;

use super::kinds::Kinds;
use crate::kernel::{Context, Entropy, secret_token};
use crate::port::{Blobs, Infrastructure, Store};
use crate::provisioning::{Actor, JobStatus, LEASE};

/// What became of a job that was worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There was nothing to do.
    Idle,
    /// It left `RUNNING` for this status.
    Left(JobStatus),
    /// It was taken away.
    LeaseLost,
}

/// A worker: takes jobs of the kinds it knows and works on them. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Worker {
    pub(super) store: Arc<dyn Store>,
    pub(super) infrastructure: Arc<dyn Infrastructure>,
    pub(super) blobs: Arc<dyn Blobs>,
    pub(super) kinds: Arc<Kinds>,
    pub(super) cx: Context,
    pub(super) actor: Actor,
    pub(super) lease: Duration,
}

impl Worker {
    /// A worker with an owner id of its own, generated at random.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        infrastructure: Arc<dyn Infrastructure>,
        blobs: Arc<dyn Blobs>,
        kinds: Arc<Kinds>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        let actor = Actor::worker(&secret_token(entropy.as_ref(), 22));
        Self {
            store,
            infrastructure,
            blobs,
            kinds,
            cx: Context::system(entropy),
            actor,
            lease: LEASE,
        }
    }

    /// The same, with leases that last this long from a claim or a heartbeat instead of [`LEASE`].
    #[must_use]
    pub const fn with_lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// How long its leases last from a claim or a heartbeat.
    #[must_use]
    pub const fn lease(&self) -> Duration {
        self.lease
    }

    /// The owner id in its leases.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.actor.id
    }
}
