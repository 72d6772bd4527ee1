//! Deletions: what is asked, and what is answered.

use core_domain::use_case::registry::removal_plan::RemovalPlan;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Planned, Success};

/// What came of a deletion: what was asked for, or with `dryRun` the plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "DeletionOf_{T}")]
pub(super) enum Deletion<T> {
    /// It was done.
    Done(T),
    /// It was not done.
    Planned(Planned<RemovalPlan>),
}

impl<T> Deletion<T> {
    /// What a deletion would do.
    pub(super) const fn planned(plan: RemovalPlan) -> Self {
        Self::Planned(Planned::new(plan))
    }
}

impl Deletion<Success> {
    /// A deletion of which nothing is left to show.
    pub(super) const fn done() -> Self {
        Self::Done(Success::YES)
    }
}
