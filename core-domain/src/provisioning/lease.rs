//! Leases: who runs which job, and until when it is theirs. A row only while the job runs, so that heartbeats never
//! touch the job itself.

use std::time::Duration;

use crate::kernel::{JobId, Timestamp};
use crate::port::Record;

/// How long a lease lasts from a claim or a heartbeat.
pub const LEASE: Duration = Duration::from_secs(30);

/// A worker's hold on a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobLease {
    /// The job.
    pub job_id: JobId,
    /// The fence the holder was given.
    pub fence: i64,
    /// The holder: random for each start of a process.
    pub owner: String,
    /// When the job may be taken away.
    pub lease_until: Timestamp,
}

impl Record for JobLease {
    type Query = JobLeaseQuery;
    const KIND: &'static str = "job lease";

    fn key(&self) -> &str {
        self.job_id.as_str()
    }
}

/// Questions about leases; earliest end first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobLeaseQuery {
    /// Those that ended before this instant.
    ExpiredAt(Timestamp),
    /// All.
    All,
}
