//! Queries and answers that several resources of the registry share.

use core_domain::kernel::PageRequest;
use core_domain::use_case::registry::RemovalPlan;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::{Limit, page_request};

/// Which page of a list.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct WhichPage {
    #[serde(default)]
    limit: Limit,
    cursor: Option<String>,
}

impl From<WhichPage> for PageRequest {
    fn from(which: WhichPage) -> Self {
        page_request(which.limit.0, which.cursor)
    }
}

/// Which page of a list that leaves deleted rows out.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WhichRows {
    #[serde(default)]
    limit: Limit,
    cursor: Option<String>,
    /// Deleted rows too; for operators.
    #[serde(default)]
    pub(super) include_deleted: bool,
}

impl WhichRows {
    pub(super) fn page(self) -> PageRequest {
        page_request(self.limit.0, self.cursor)
    }
}

/// How to delete.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct HowToDelete {
    /// Only tell what would go.
    #[serde(default)]
    pub(super) dry_run: bool,
}

/// What came of a deletion: what was asked for, or with `dryRun` the plan.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "DeletionOf_{T}")]
pub(super) enum Deletion<T> {
    /// It was done.
    Done(T),
    /// It was not done.
    Planned(Planned),
}

/// What a deletion would do; nothing was done.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Planned {
    /// Always true.
    dry_run: bool,
    plan: Plan,
}

/// What would go.
#[derive(Debug, Serialize, JsonSchema)]
struct Plan {
    /// How many entities.
    entities: u64,
    /// How many resources.
    resources: u64,
}

impl<T> From<RemovalPlan> for Deletion<T> {
    fn from(plan: RemovalPlan) -> Self {
        Self::Planned(Planned {
            dry_run: true,
            plan: Plan {
                entities: plan.entities,
                resources: plan.resources,
            },
        })
    }
}

/// It is done.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Success {
    /// Always true.
    success: bool,
}

impl Success {
    pub(super) const DONE: Deletion<Self> = Deletion::Done(Self { success: true });
}

/// A bounded list, whole.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Data_{T}")]
pub(super) struct Data<T> {
    /// The records.
    pub(super) data: Vec<T>,
}
