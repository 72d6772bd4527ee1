//! The state of a fake, which all its connections share.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The state that all connections share, protected by a lock.
#[derive(Debug)]
pub struct Shared<T>(Mutex<T>);

impl<T> Shared<T> {
    /// Shares a state.
    pub const fn new(state: T) -> Self {
        Self(Mutex::new(state))
    }

    /// Locks the state. A panic of another connection does not make it unusable.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
