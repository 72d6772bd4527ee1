//! The plan of a deployment, by which an upload needs to have only the files that the provider does not have.

use std::time::Duration;

use crate::kernel::{DeployPlanId, PlatformId, Timestamp, record};

/// The plan of a deployment. The list of its files is stored as a blob.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct DeployPlan {
    /// The id of the plan.
    pub id: DeployPlanId,
    /// The platform that the site belongs to.
    pub platform_id: PlatformId,
    /// The caller that made the plan, and the only one that may use it: the id of a user or API key, or the name of a
    /// service.
    pub actor_id: String,
    /// When the plan was made.
    pub created_at: Timestamp,
    /// When the plan expires.
    pub expires_at: Timestamp,
}

record! {
    DeployPlan as "deploy plan" by id, asked DeployPlanQuery;
    of platform_id;
}

impl DeployPlan {
    /// The time for which a plan is valid: 15 minutes.
    pub const LIFETIME: Duration = Duration::from_secs(15 * 60);

    /// Creates a plan.
    #[must_use]
    pub fn create(
        id: DeployPlanId,
        platform_id: &PlatformId,
        actor_id: &str,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            platform_id: platform_id.clone(),
            actor_id: actor_id.to_owned(),
            created_at: now,
            expires_at: now.plus(Self::LIFETIME),
        }
    }

    /// Returns whether a caller may use the plan now.
    #[must_use]
    pub fn can_be_used_by(&self, actor_id: &str, now: Timestamp) -> bool {
        self.actor_id == actor_id && now < self.expires_at
    }
}

/// Queries for plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeployPlanQuery {
    /// The plans that have not expired at this time.
    ValidAt(Timestamp),
    /// The plans that have expired at this time.
    ExpiredAt(Timestamp),
}
