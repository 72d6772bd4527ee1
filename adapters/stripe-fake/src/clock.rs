//! The clock of the fake. It is deterministic: equal in every run, unless it runs.

use std::time::Duration;

use tokio::time::Instant;

/// A clock in whole seconds. It shows its start time plus the time that was added, and if it runs, the elapsed time.
pub(crate) struct Clock {
    seconds: i64,
    running_since: Option<Instant>,
}

impl Clock {
    pub(crate) fn new(now: i64, runs: bool) -> Self {
        Self {
            seconds: now,
            running_since: runs.then(Instant::now),
        }
    }

    /// Returns the time in Unix seconds.
    pub(crate) fn now(&self) -> i64 {
        let elapsed = self
            .running_since
            .map_or(Duration::ZERO, |since| since.elapsed());
        self.seconds + whole(elapsed)
    }

    pub(crate) fn advance(&mut self, by: Duration) {
        self.seconds += whole(by);
    }
}

fn whole(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or_default()
}
