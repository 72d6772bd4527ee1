//! The number of units of work that wait for a connection.

use std::sync::atomic::{AtomicUsize, Ordering};

/// A unit that waits. It is counted until this value is dropped.
pub(crate) struct Waiting<'w>(&'w AtomicUsize);

impl<'w> Waiting<'w> {
    pub(crate) fn new(number: &'w AtomicUsize) -> Self {
        number.fetch_add(1, Ordering::Relaxed);
        Self(number)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
