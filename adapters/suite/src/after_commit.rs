//! What happens in this process after every commit.

use std::sync::{Arc, OnceLock};

use core_domain::port::Wake;
use core_http::gateway::Invalidate;
use tokio::sync::Notify;

use crate::worker::WorkerWake;

/// Wakes the worker and the relay of the outbox, and voids what the gateway remembers about sessions and suspensions: sign-out and suspension count
/// from the next request on.
#[derive(Debug)]
pub(crate) struct AfterCommit {
    worker: WorkerWake,
    relay: Arc<Notify>,
    /// Set once the gateway is there; it is made of services that hold this value.
    gateway: OnceLock<Invalidate>,
}

impl AfterCommit {
    pub(crate) fn new(worker: WorkerWake, relay: Arc<Notify>) -> Self {
        Self {
            worker,
            relay,
            gateway: OnceLock::new(),
        }
    }

    pub(crate) fn tell_gateway(&self, invalidate: Invalidate) {
        self.gateway.get_or_init(|| invalidate);
    }
}

impl Wake for AfterCommit {
    fn wake(&self) {
        // Before anybody can be answered out of what was true before the commit.
        if let Some(gateway) = self.gateway.get() {
            gateway.all();
        }
        self.worker.wake();
        self.relay.notify_one();
    }
}
