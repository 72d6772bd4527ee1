//! Settings of the sweeper.

use std::time::Duration;

use core_domain::kernel::duration_text;
use core_domain::use_case::shared::MAX_SLICE;
use core_http::gateway::ConfigError;
use serde::{Deserialize, Serialize};

/// The longest time for which a slice may hold the writer of SQLite.
const MAX_SLICE_TIME: Duration = Duration::from_millis(100);

/// The shortest lease: a store that is busy must not cost the process its turn.
const MIN_LEASE: Duration = Duration::from_secs(1);

/// Limits for removing expired records. On several nodes, one at a time removes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SweepOptions {
    /// Maximum number of records that one unit of work removes, 1,000 at most. Default: 1,000.
    pub slice: u32,
    /// The time that one unit of work should take, 100 ms at most. Slices that take longer get smaller. Default: 25 ms.
    #[serde(with = "duration_text")]
    pub slice_time: Duration,
    /// Time between two sweeps of records that last for minutes, such as links, tokens and challenges. Default: 5 min.
    #[serde(with = "duration_text")]
    pub short_lived_every: Duration,
    /// Time between two sweeps of all others, such as sessions, stored answers and webhook messages. Default: 24 h.
    #[serde(with = "duration_text")]
    pub long_lived_every: Duration,
    /// Time after which another node sweeps when the one that does is not heard of any more, at least 1 s. Default: 1 min.
    #[serde(with = "duration_text")]
    pub lease: Duration,
}

impl Default for SweepOptions {
    fn default() -> Self {
        Self {
            slice: MAX_SLICE,
            slice_time: Duration::from_millis(25),
            short_lived_every: Duration::from_secs(5 * 60),
            long_lived_every: Duration::from_secs(24 * 60 * 60),
            lease: Duration::from_secs(60),
        }
    }
}

impl SweepOptions {
    /// Checks that the sweeper can run with the options.
    ///
    /// # Errors
    /// [`ConfigError`] names the first option that is not valid.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refused = |setting, problem: &str| {
            let problem = problem.to_owned();
            Err(ConfigError { setting, problem })
        };
        if self.slice == 0 || self.slice > MAX_SLICE {
            return refused("sweep.slice", "must be between 1 and 1,000");
        }
        if self.slice_time.is_zero() || self.slice_time > MAX_SLICE_TIME {
            return refused("sweep.slice_time", "must be between nothing and 100 ms");
        }
        if self.short_lived_every.is_zero() {
            return refused("sweep.short_lived_every", "must be more than nothing");
        }
        if self.long_lived_every.is_zero() {
            return refused("sweep.long_lived_every", "must be more than nothing");
        }
        if self.lease < MIN_LEASE {
            return refused("sweep.lease", "must be a second at least");
        }
        Ok(())
    }
}
