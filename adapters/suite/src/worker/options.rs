//! How a worker runs.

use std::time::Duration;

use core_domain::kernel::duration_text;
use core_domain::provisioning::LEASE;
use core_http::gateway::ConfigError;
use serde::{Deserialize, Serialize};

/// The shortest lease: a store that is busy must not cost jobs that are worked on.
const SHORTEST_LEASE: Duration = Duration::from_secs(1);

/// How the worker of a process runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerOptions {
    /// How many jobs at a time. With 0 the process leaves them to others on the same database.
    pub slots: usize,
    /// How long steps may go on after a stop was asked for, before they are cut off.
    #[serde(with = "duration_text")]
    pub drain: Duration,
    /// How long a job stays with a process that is not heard of any more, at least a second. Leases are prolonged each third
    /// of it, and steps cut off when that has failed for two thirds.
    #[serde(with = "duration_text")]
    pub lease: Duration,
    /// Whether no other process uses the store: jobs that a former process left running are taken back at once.
    #[serde(skip)]
    pub sole_user: bool,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            // Steps mostly wait for a provider; what a slot costs is a task and now and then a connection. Their number is
            // also that of the jobs which share a commit.
            slots: 128,
            drain: Duration::from_secs(25),
            lease: LEASE,
            sole_user: true,
        }
    }
}

impl WorkerOptions {
    /// Tells whether a worker can run like this.
    ///
    /// # Errors
    /// [`ConfigError`] names the setting that is not valid.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.lease < SHORTEST_LEASE {
            return Err(ConfigError {
                setting: "worker.lease",
                problem: "must be a second at least".to_owned(),
            });
        }
        Ok(())
    }
}
