//! The response to a deletion.

use core_domain::use_case::registry::removal_plan::RemovalPlan;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{DryRunResponse, Success};

/// The response to a deletion: its result, or with `dryRun` the plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "DeletionOf_{T}")]
pub(super) enum Deletion<T> {
    /// The deletion was executed.
    Done(T),
    /// The deletion was not executed; this is its plan.
    Planned(DryRunResponse<RemovalPlan>),
}

impl<T> Deletion<T> {
    /// Returns the response with the plan of a deletion.
    pub(super) const fn from_plan(plan: RemovalPlan) -> Self {
        Self::Planned(DryRunResponse::new(plan))
    }
}

impl Deletion<Success> {
    /// Returns the response to an executed deletion that has no record to return.
    pub(super) const fn success() -> Self {
        Self::Done(Success::YES)
    }
}
