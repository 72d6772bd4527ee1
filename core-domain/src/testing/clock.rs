//! A clock for tests.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::kernel::{Clock, Timestamp};

/// A clock that changes only when a test sets or advances it.
#[derive(Debug)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// Creates a clock that shows the given instant.
    #[must_use]
    pub fn at(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.millis()))
    }

    /// Moves the clock forward by the duration.
    pub fn advance(&self, duration: Duration) {
        self.set(self.now().plus(duration));
    }

    /// Sets the clock to any instant, also to an earlier one.
    pub fn set(&self, now: Timestamp) {
        self.0.store(now.millis(), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::SeqCst))
    }
}
