//! The clock of the fake. It is deterministic: equal in every run.

use jiff::Timestamp;

/// The initial time in Unix seconds: 2026-11-01.
const EPOCH: u64 = 1_793_491_200;

/// A clock that advances by one second with each request, so later events have later times.
pub(crate) struct Clock(u64);

impl Clock {
    pub(crate) const fn new() -> Self {
        Self(EPOCH)
    }

    pub(crate) const fn tick(&mut self) {
        self.0 += 1;
    }

    /// Returns the time in RFC 3339 format.
    pub(crate) fn now(&self) -> String {
        let seconds = i64::try_from(self.0).unwrap_or(i64::MAX);
        Timestamp::from_second(seconds)
            .unwrap_or(Timestamp::MAX)
            .to_string()
    }
}
