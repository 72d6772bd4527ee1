//! The planned move of a subscription to another version of a plan, which an operator begins. The customer is
//! notified at least 30 days before.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::plan::PlanTier;
use super::plan_version::PlanVersionName;
use crate::kernel::Timestamp;

/// The time between the notice of a migration and the earliest boundary at which it is made.
const NOTICE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The version of a plan to which a subscription moves. Customers cannot remove the migration, but they can change to
/// another tier or cancel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct PlanMigration {
    /// The tier of the new plan.
    pub tier: PlanTier,
    /// The version of the new plan's terms.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "1_u32..=9"))]
    pub plan_version: u32,
    /// The migration is made with the first period that begins at this instant or later.
    pub not_before: Timestamp,
}

impl PlanMigration {
    /// Plans the move to another version for the first period that begins 30 days after `now` or later.
    #[must_use]
    pub fn plan(to: PlanVersionName, now: Timestamp) -> Self {
        Self {
            tier: to.tier,
            plan_version: to.version,
            not_before: now.plus(NOTICE),
        }
    }

    /// Returns the version of the new plan.
    #[must_use]
    pub const fn target(&self) -> PlanVersionName {
        PlanVersionName {
            tier: self.tier,
            version: self.plan_version,
        }
    }
}
