//! Maintenance leases. A lease ensures that only one process at a time performs a maintenance task.

use crate::kernel::{Timestamp, record};

/// The right of one process to perform a maintenance task until the lease expires.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct MaintenanceLease {
    /// The name of the task.
    #[cfg_attr(any(test, feature = "proptest"), proptest(regex = "[a-z]{1,12}"))]
    pub task: String,
    /// The id of the process that holds the lease.
    pub holder: String,
    /// The time at which the lease expires unless its holder renews it.
    pub expires_at: Timestamp,
}

record! {
    MaintenanceLease as "maintenance lease" by task, asked MaintenanceLeaseQuery;
}

/// Queries for maintenance leases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MaintenanceLeaseQuery {
    /// The lease of this task.
    Of(String),
}
