//! The idempotency keys of the writes in progress.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The keys of the writes in progress in this process. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct InFlight(Arc<Mutex<HashSet<String>>>);

impl InFlight {
    /// Adds the id of a key, and returns whether it was not in progress before.
    pub(crate) fn insert(&self, id: &str) -> bool {
        self.lock().insert(id.to_owned())
    }

    /// Removes the id of a key, so that another request with it can run.
    pub(crate) fn remove(&self, id: &str) {
        self.lock().remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
