//! Requests that only ask what would happen (`dryRun=true`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether to do it.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DryRunQuery {
    /// Only tell what would happen.
    #[serde(default)]
    pub dry_run: bool,
}

/// What would happen; nothing did.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "PlannedOf_{P}")]
pub struct Planned<P> {
    /// Always true.
    dry_run: bool,
    /// What would happen.
    plan: P,
}

impl<P> Planned<P> {
    /// What would happen.
    pub const fn new(plan: P) -> Self {
        Self {
            dry_run: true,
            plan,
        }
    }

    /// The plan.
    pub const fn plan(&self) -> &P {
        &self.plan
    }
}
