//! Settings of the sweeper.

use std::time::Duration;

use core_domain::kernel::duration_text;
use core_domain::use_case::shared::MAX_SLICE;
use core_http::gateway::ConfigError;
use serde::{Deserialize, Serialize};

/// Maximum time for which a slice may hold SQLite's only writer.
const MAX_SLICE_TIME: Duration = Duration::from_millis(100);

/// Minimum lease: a busy store must not make the process lose it.
const MIN_LEASE: Duration = Duration::from_secs(1);

/// Limits for removing expired records. With several nodes, one node at a time removes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SweepOptions {
    /// Maximum number of records that one unit of work removes, at most 1,000. Default: 1,000.
    pub slice: u32,
    /// Target duration of one unit of work, at most 100 ms. Slices that take longer get smaller. Default: 25 ms.
    #[serde(with = "duration_text")]
    pub slice_time: Duration,
    /// Time between two sweeps of records that last for minutes, such as links, tokens and challenges. Default: 5 min.
    #[serde(with = "duration_text")]
    pub short_lived_every: Duration,
    /// Time between two sweeps of all other records, such as sessions, stored responses and webhook messages. Default:
    /// 24 h.
    #[serde(with = "duration_text")]
    pub long_lived_every: Duration,
    /// Time after which another node takes over sweeping from a node that no longer reports, at least 1 s. Default: 1
    /// min.
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
    /// Checks that the sweeper can run with these options.
    ///
    /// # Errors
    /// [`ConfigError`] names the first invalid option.
    pub fn check(&self) -> Result<(), ConfigError> {
        let refused = |setting, problem: &str| {
            let problem = problem.to_owned();
            Err(ConfigError { setting, problem })
        };
        if self.slice == 0 || self.slice > MAX_SLICE {
            return refused("sweep.slice", "must be between 1 and 1,000");
        }
        if self.slice_time.is_zero() || self.slice_time > MAX_SLICE_TIME {
            return refused(
                "sweep.slice_time",
                "must be greater than 0 and at most 100 ms",
            );
        }
        if self.short_lived_every.is_zero() {
            return refused("sweep.short_lived_every", "must be greater than 0");
        }
        if self.long_lived_every.is_zero() {
            return refused("sweep.long_lived_every", "must be greater than 0");
        }
        if self.lease < MIN_LEASE {
            return refused("sweep.lease", "must be at least 1 s");
        }
        Ok(())
    }
}
