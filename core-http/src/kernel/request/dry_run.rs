//! Dry runs: requests with `dryRun=true`, which return a plan and change nothing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The query of an operation that supports dry runs.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DryRunQuery {
    /// If `true`, returns the plan of the operation and changes nothing. Default: `false`.
    #[serde(default)]
    pub dry_run: bool,
}

/// The response of a dry run. Nothing was changed.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PlannedOf_{P}")]
pub struct DryRunResponse<P> {
    /// Always `true`: the operation was not executed.
    dry_run: bool,
    /// The effects that the operation would have.
    plan: P,
}

impl<P> DryRunResponse<P> {
    /// Creates the response with this plan.
    pub const fn new(plan: P) -> Self {
        Self {
            dry_run: true,
            plan,
        }
    }

    /// Returns the effects that the operation would have.
    pub const fn plan(&self) -> &P {
        &self.plan
    }
}
