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
    /// Whether a member of the platform's organization has suspended it. `false` in records of older versions.
    pub by_owner: bool,
    /// Whether an operator has suspended the platform. Then only an operator can restore it.
    pub by_operator: bool,
    /// Whether the platform is suspended because its invoices are not paid. A payment ends that, and an operator can.
    pub by_billing: bool,
    /// The time at which the suspension started.
    pub created_at: Timestamp,
}

record! {
    PlatformSuspension as "platform suspension" by platform_id, asked PlatformSuspensionQuery;
}

/// The source of a suspension. A platform can have several at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SuspensionSource {
    /// A member of the platform's organization.
    Owner,
    /// An operator.
    Operator,
    /// Billing, because invoices are not paid.
    Billing,
}

impl PlatformSuspension {
    /// Returns whether only an operator or a payment can end the suspension.
    #[must_use]
    pub const fn is_locked(&self) -> bool {
        self.by_operator || self.by_billing
    }

    /// Adds a source.
    pub const fn add(&mut self, source: SuspensionSource) {
        // A record of an older version does not say that the owner is the source.
        self.by_owner |= !self.is_locked();
        match source {
            SuspensionSource::Owner => self.by_owner = true,
            SuspensionSource::Operator => self.by_operator = true,
            SuspensionSource::Billing => self.by_billing = true,
        }
    }
}

/// Queries on platform suspensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlatformSuspensionQuery {
    /// All suspensions, oldest first.
    All,
}
