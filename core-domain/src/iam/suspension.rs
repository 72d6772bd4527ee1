//! The suspension flag of a platform, which the gateway enforces.

use crate::kernel::{PlatformId, Reason, Timestamp, record};

/// The suspension of a platform. The record exists as long as the platform is suspended.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct PlatformSuspension {
    /// The id of the suspended platform.
    pub platform_id: PlatformId,
    /// The reason for the suspension; `null` if none was given.
    pub reason: Option<Reason>,
    /// Whether an operator suspended the platform. Then only an operator can restore it.
    pub by_operator: bool,
    /// The time at which the suspension started.
    pub created_at: Timestamp,
}

record! {
    PlatformSuspension as "platform suspension" by platform_id, asked PlatformSuspensionQuery;
}

/// Queries on platform suspensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlatformSuspensionQuery {
    /// All suspensions, oldest first.
    All,
}
