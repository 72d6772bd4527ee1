//! The three stores, fresh for a test.

use std::sync::Arc;

use core_domain::port::Store;
use core_storage::{memory, postgres, sqlite};
use core_suite::SystemClock;

/// A store that can be opened, and what must live as long as it.
pub struct OpenStore {
    store: Arc<dyn Store>,
    _keeps: Box<dyn std::any::Any>,
}

impl OpenStore {
    pub async fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }
}
