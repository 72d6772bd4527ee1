//! Leases: who runs which job, and until when it is theirs. A row only while the job runs, so that heartbeats never
//! touch the job itself.

use std::time::Duration;

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{JobId, Timestamp, record};

/// How long a lease lasts from a claim or a heartbeat, unless a worker is told otherwise.
pub const LEASE: Duration = Duration::from_secs(30);

/// A worker's hold on a job.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct JobLease {
    /// The job.
    pub job_id: JobId,
    /// The fence the holder was given.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub fence: i64,
    /// The holder: random for each start of a process.
    pub owner: String,
    /// When the job may be taken away.
    pub lease_until: Timestamp,
}

record! {
    JobLease as "job lease" by job_id, asked JobLeaseQuery;
}

/// Questions about leases; earliest end first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobLeaseQuery {
    /// Those that ended before this instant.
    ExpiredAt(Timestamp),
    /// All.
    All,
    /// Those of these jobs.
    OfJobs(Vec<JobId>),
}
