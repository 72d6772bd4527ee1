//! Settings of the metrics.

use std::time::Duration;

use core_domain::kernel::duration_text;
use core_http::gateway::ConfigError;
use serde::{Deserialize, Serialize};

/// The interval at which gauges are refreshed, and the duration from which units of work are logged as slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MetricsOptions {
    /// Time between two refreshes of the gauges that need queries, such as the age of the oldest job. A refresh that
    /// takes long is followed by a longer pause: twenty times its duration. Default: 15 s.
    #[serde(with = "duration_text")]
    pub refresh_every: Duration,
    /// A unit of work that takes longer is logged as a warning. Default: 1 s.
    #[serde(with = "duration_text")]
    pub slow_unit: Duration,
}

impl Default for MetricsOptions {
    fn default() -> Self {
        Self {
            refresh_every: Duration::from_secs(15),
            slow_unit: Duration::from_secs(1),
        }
    }
}

impl MetricsOptions {
    /// Checks that the gauges can be refreshed with these options.
    ///
    /// # Errors
    /// [`ConfigError`] names the invalid option.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.refresh_every.is_zero() {
            return Err(ConfigError {
                setting: "metrics.refresh_every",
                problem: "must be greater than 0".to_owned(),
            });
        }
        Ok(())
    }
}
