//! Settings of the times for which ended records are kept.

use std::time::Duration;

use core_domain::kernel::duration_text;
use core_http::gateway::ConfigError;
use serde::{Deserialize, Serialize};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The minimum retention of the audit log. A shorter one could end before a month is sealed on all nodes.
const MIN_AUDIT: Duration = Duration::from_secs(31 * 24 * 60 * 60);

/// How long ended records are kept, at least a day each. Older ones are removed once a day, in slices
/// ([`SweepOptions`](crate::SweepOptions)). Records that have not ended stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HistoryOptions {
    /// Jobs that completed or were cancelled, and their events. Jobs with an open dead letter stay. Default: 90 days.
    #[serde(with = "duration_text")]
    pub jobs: Duration,
    /// Dead letters that were resolved or discarded. Default: 180 days.
    #[serde(with = "duration_text")]
    pub dead_letters: Duration,
    /// Builds, after their last change. Default: 365 days.
    #[serde(with = "duration_text")]
    pub builds: Duration,
    /// Deployments, after their creation. Those that are pinned or live, or whose content another one has, stay.
    /// Default: 365 days.
    #[serde(with = "duration_text")]
    pub deployments: Duration,
    /// Lifecycle records of platforms. Default: 400 days.
    #[serde(with = "duration_text")]
    pub lifecycle_records: Duration,
    /// Messages to webhooks that were delivered or given up. Default: 30 days.
    #[serde(with = "duration_text")]
    pub webhook_deliveries: Duration,
    /// Entries of the audit log, at least 31 days. A month whose last entry is older is exported to a blob, signed, and
    /// then removed. Without a data folder and a store for blobs, nothing is removed. Default: 400 days.
    #[serde(with = "duration_text")]
    pub audit: Duration,
}

impl Default for HistoryOptions {
    fn default() -> Self {
        Self {
            jobs: DAY * 90,
            dead_letters: DAY * 180,
            builds: DAY * 365,
            deployments: DAY * 365,
            lifecycle_records: DAY * 400,
            webhook_deliveries: DAY * 30,
            audit: DAY * 400,
        }
    }
}

impl HistoryOptions {
    /// Checks that every time is at least a day, and that of the audit log 31 days.
    ///
    /// # Errors
    /// [`ConfigError`] names the first invalid option.
    pub fn check(&self) -> Result<(), ConfigError> {
        let times = [
            ("history.jobs", self.jobs),
            ("history.dead_letters", self.dead_letters),
            ("history.builds", self.builds),
            ("history.deployments", self.deployments),
            ("history.lifecycle_records", self.lifecycle_records),
            ("history.webhook_deliveries", self.webhook_deliveries),
        ];
        if let Some((setting, _)) = times.into_iter().find(|(_, time)| *time < DAY) {
            let problem = "must be at least a day".to_owned();
            return Err(ConfigError { setting, problem });
        }
        if self.audit < MIN_AUDIT {
            let (setting, problem) = ("history.audit", "must be at least 31 days".to_owned());
            return Err(ConfigError { setting, problem });
        }
        Ok(())
    }
}
