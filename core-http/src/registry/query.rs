//! Queries and answers that several resources of the registry share.

use core_domain::kernel::PageRequest;
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

/// It is done.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Success {
    /// Always true.
    success: bool,
}

impl Success {
    pub(super) const DONE: Self = Self { success: true };
}

/// A bounded list, whole.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Data_{T}")]
pub(super) struct Data<T> {
    /// The records.
    pub(super) data: Vec<T>,
}
