//! Stored versions of plans: a subscription keeps the terms that it began with.

use std::fmt;
use std::str::FromStr;

use super::plan::{PlanTerms, PlanTier};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::json_text;
use crate::kernel::{JsonText, TextValue, Timestamp, record};

/// The name of a version of a plan: its tier and its number, such as `growth:1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanVersionName {
    /// The tier.
    pub tier: PlanTier,
    /// The number of the version, from 1.
    pub version: u32,
}

/// A text is not the name of a version of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a version of a plan is a tier and a number from 1, such as growth:2")]
pub struct PlanVersionNameError;

impl fmt::Display for PlanVersionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.tier, self.version)
    }
}

impl FromStr for PlanVersionName {
    type Err = PlanVersionNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (tier, version) = text.split_once(':').ok_or(PlanVersionNameError)?;
        let tier = PlanTier::from_text(tier).ok_or(PlanVersionNameError)?;
        let version = version.parse().map_err(|_| PlanVersionNameError)?;
        let name = Self { tier, version };
        // There are no other spellings, such as `growth:01`.
        let is_name = version > 0 && name.to_string() == text;
        is_name.then_some(name).ok_or(PlanVersionNameError)
    }
}

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

impl PlanTerms {
    /// Returns the name of this version of the plan.
    #[must_use]
    pub const fn version_name(&self) -> PlanVersionName {
        PlanVersionName {
            tier: self.tier,
            version: self.version,
        }
    }
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

    /// Returns the id of a version of a tier: its name.
    #[must_use]
    pub fn id_of(tier: PlanTier, version: u32) -> String {
        PlanVersionName { tier, version }.to_string()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_named_by_its_tier_and_its_number() {
        let name = "growth:12".parse::<PlanVersionName>().unwrap();
        assert_eq!((name.tier, name.version), (PlanTier::Growth, 12));
        for text in [
            "",
            "growth",
            "growth:",
            "growth:0",
            "growth:01",
            "growth:+1",
            "gold:1",
            "growth:1:2",
        ] {
            assert_eq!(
                text.parse::<PlanVersionName>(),
                Err(PlanVersionNameError),
                "{text}"
            );
        }
    }
}
