//! Deletions: what is asked, and what is answered.

use core_domain::use_case::registry::removal_plan::RemovalPlan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::Success;

/// How to delete.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeletionQuery {
    /// Only tell what would go.
    #[serde(default)]
    pub(super) dry_run: bool,
}

/// What came of a deletion: what was asked for, or with `dryRun` the plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "DeletionOf_{T}")]
pub(super) enum Deletion<T> {
    /// It was done.
    Done(T),
    /// It was not done.
    Planned(Planned),
}

/// What a deletion would do; nothing was done.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Planned {
    /// Always true.
    dry_run: bool,
    /// What would go.
    plan: RemovalPlan,
}

impl<T> Deletion<T> {
    /// What a deletion would do.
    pub(super) const fn planned(plan: RemovalPlan) -> Self {
        Self::Planned(Planned {
            dry_run: true,
            plan,
        })
    }
}

impl Deletion<Success> {
    /// A deletion of which nothing is left to show.
    pub(super) const fn done() -> Self {
        Self::Done(Success::YES)
    }
}
