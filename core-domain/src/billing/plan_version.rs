//! Stored versions of plans: a subscription keeps the terms that it began with.

use super::plan::{PlanTerms, PlanTier};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::json_text;
use crate::kernel::{JsonText, Timestamp, record};

/// A version of the terms of a tier, as it is stored. It never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct PlanVersion {
    /// The tier and the version: `growth:1`.
    pub id: String,
    /// The digest of the terms; see [`PlanTerms::digest`].
    pub digest: String,
    /// The terms.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json_text()"))]
    pub terms: JsonText,
    /// When the version was first configured.
    pub created_at: Timestamp,
}

record! {
    PlanVersion as "plan version" by id, asked PlanVersionQuery;
}

impl PlanVersion {
    /// Creates the stored form of terms.
    #[must_use]
    pub fn of(terms: &PlanTerms, now: Timestamp) -> Self {
        Self {
            id: Self::id_of(terms.tier, terms.version),
            digest: terms.digest(),
            terms: JsonText::of(terms),
            created_at: now,
        }
    }

    /// Returns the id of a version of a tier.
    #[must_use]
    pub fn id_of(tier: PlanTier, version: u32) -> String {
        format!("{tier}:{version}")
    }

    /// Returns the terms. Returns `None` if they cannot be read.
    #[must_use]
    pub fn terms(&self) -> Option<PlanTerms> {
        serde_json::from_str(self.terms.as_str()).ok()
    }
}

/// Queries for versions of plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanVersionQuery {
    /// All versions, ordered by id.
    All,
}
