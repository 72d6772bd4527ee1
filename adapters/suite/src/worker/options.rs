//! How a worker runs.

use std::time::Duration;

use core_domain::kernel::duration_text;
use serde::{Deserialize, Serialize};

/// How the worker of a process runs.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerOptions {
    /// How many jobs at a time. With 0 the process leaves them to others on the same database.
    pub slots: usize,
    /// How long steps may go on after a stop was asked for, before they are cut off.
    #[serde(with = "duration_text")]
    pub drain: Duration,
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
            sole_user: true,
        }
    }
}
