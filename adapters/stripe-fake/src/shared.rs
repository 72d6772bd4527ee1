//! The state of a fake, which all its connections share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::fault::FaultQueue;
use crate::journal::Journal;
use crate::limit::Limiter;
use crate::state::State;

/// The state that the lock protects.
pub(crate) struct Inner {
    pub(crate) state: State,
    pub(crate) faults: FaultQueue,
    pub(crate) limiter: Limiter,
    pub(crate) journal: Journal,
}

/// The state that all connections share.
pub(crate) struct SharedInner(Mutex<Inner>);

impl SharedInner {
    pub(crate) const fn new(inner: Inner) -> Self {
        Self(Mutex::new(inner))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
