//! The clock and the ids of the fake. They are deterministic: equal in every run, unless the clock runs.

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

/// A generator of ids that look random but are derived from a counter.
#[derive(Default)]
pub(crate) struct Ids(u64);

impl Ids {
    /// Returns a new id with a prefix, for example `cus_` and 24 hexadecimal digits.
    pub(crate) fn next(&mut self, prefix: &str) -> String {
        self.0 += 1;
        let digits = blake3::hash(&self.0.to_le_bytes()).to_hex();
        format!("{prefix}_{}", &digits[..24])
    }
}
