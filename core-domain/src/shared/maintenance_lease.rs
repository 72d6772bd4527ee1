//! Maintenance leases: which process does a task that one process at a time may do.

use crate::kernel::{Timestamp, record};

/// The right of one process to do a maintenance task, until it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct MaintenanceLease {
    /// The name of the task.
    #[cfg_attr(any(test, feature = "proptest"), proptest(regex = "[a-z]{1,12}"))]
    pub task: String,
    /// The id of the process that holds the lease.
    pub holder: String,
    /// When the lease expires, unless its holder renews it.
    pub expires_at: Timestamp,
}

record! {
    MaintenanceLease as "maintenance lease" by task, asked MaintenanceLeaseQuery;
}

/// Questions about maintenance leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MaintenanceLeaseQuery {
    /// The lease of this task.
    Of(String),
}
