//! Settings of a worker.

use std::time::Duration;

use core_domain::kernel::duration_text;
use core_domain::provisioning::DEFAULT_LEASE;
use core_http::gateway::ConfigError;
use serde::{Deserialize, Serialize};

/// Minimum lease: a busy store must not make a worker lose the jobs that it works on.
const MIN_LEASE: Duration = Duration::from_secs(1);

/// Concurrency, drain time and lease of a process's worker.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerOptions {
    /// Maximum number of jobs at the same time. With 0 the process leaves jobs to other processes on the same database.
    /// Default: 128.
    pub slots: usize,
    /// How long steps may continue after a stop was requested, before they are aborted. Default: 25 s.
    #[serde(with = "duration_text")]
    pub drain: Duration,
    /// How long a job stays assigned to a process that no longer reports, at least 1 s. A lease is extended after each
    /// third of this time. A step is aborted if that has failed for two thirds of it.
    #[serde(with = "duration_text")]
    pub lease: Duration,
    /// True if no other process uses the store. Jobs that a previous process left running are then recovered at once.
    #[serde(skip)]
    pub sole_user: bool,
}

impl Default for WorkerOptions {
    fn default() -> Self {
        Self {
            // Steps mostly wait for a provider. A slot costs one task, and sometimes a connection. Up to this number of
            // jobs can share one commit.
            slots: 128,
            drain: Duration::from_secs(25),
            lease: DEFAULT_LEASE,
            sole_user: true,
        }
    }
}

impl WorkerOptions {
    /// Checks that a worker can run with these options.
    ///
    /// # Errors
    /// [`ConfigError`] names the invalid setting.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.lease < MIN_LEASE {
            return Err(ConfigError {
                setting: "worker.lease",
                problem: "must be at least 1 s".to_owned(),
            });
        }
        Ok(())
    }
}
