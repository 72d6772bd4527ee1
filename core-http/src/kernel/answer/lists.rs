//! The list shapes of the interface that have a route (P1 to P5).

use core_domain::kernel::{Page, PageRequest, Stored};
use schemars::JsonSchema;
use serde::Serialize;

/// `{success: true}`: what there is to say of a thing that is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Success {
    /// Always true.
    pub success: bool,
}

impl Success {
    /// The one there is.
    pub const YES: Self = Self { success: true };
}

/// `{data}`: a bounded list, whole.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Data_{T}")]
pub struct Data<T> {
    /// The records.
    pub data: Vec<T>,
}

/// `{data, hasMore}`: the beginning of a list.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "BoundedData_{T}")]
pub(crate) struct BoundedData<T> {
    /// The first records.
    pub(crate) data: Vec<T>,
    /// `true` if records are left out because the answer would be too large; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has_more: bool,
}

/// `{data, total, cursor}`: a list that is whole unless it is very large.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Counted_{T}")]
pub struct Counted<T> {
    /// The records.
    pub data: Vec<T>,
    /// The number of records of all pages.
    pub total: u64,
    /// The cursor of the next page; `null` if there is none.
    pub cursor: Option<String>,
}

impl<T: Clone> From<Page<Stored<T>>> for Counted<T> {
    fn from(page: Page<Stored<T>>) -> Self {
        Self {
            data: page.items.into_iter().map(Stored::into_inner).collect(),
            total: page.total,
            cursor: page.next.map(|cursor| cursor.0),
        }
    }
}

/// P1: registry lists.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ListP1_{T}")]
pub struct ListP1<T> {
    /// The records.
    pub data: Vec<T>,
    /// Where they stand in the list.
    pub pagination: PaginationP1,
}

/// The pagination of P1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaginationP1 {
    /// Whether another page follows.
    pub has_more: bool,
    /// Where it begins.
    pub next_cursor: Option<String>,
    /// How many records matched in all when the first page was asked for. The cursor holds on to the number, so that
    /// every page of a walk says the same; a request without a cursor counts anew.
    pub total: u64,
}

impl<T> From<Page<T>> for ListP1<T> {
    fn from(page: Page<T>) -> Self {
        Self {
            pagination: PaginationP1 {
                has_more: page.next.is_some(),
                next_cursor: page.next.map(|c| c.0),
                total: page.total,
            },
            data: page.items,
        }
    }
}

/// P2: the provisioning job list.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ListP2_{T}")]
pub struct ListP2<T> {
    /// The records.
    pub data: Vec<T>,
    /// Where they stand in the list.
    pub pagination: PaginationP2,
}

/// The pagination of P2.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaginationP2 {
    /// The page size.
    pub limit: u32,
    /// The cursor of this page.
    pub cursor: Option<String>,
    /// The cursor of the next one.
    pub next_cursor: Option<String>,
    /// How many records this page has.
    pub count: usize,
}

impl<T> ListP2<T> {
    /// The answer to this request.
    #[must_use]
    pub fn new(page: Page<T>, asked: &PageRequest) -> Self {
        Self {
            pagination: PaginationP2 {
                limit: asked.limit,
                cursor: asked.cursor.as_ref().map(|c| c.0.clone()),
                next_cursor: page.next.map(|c| c.0),
                count: page.items.len(),
            },
            data: page.items,
        }
    }
}

/// P3: the list of the dead-letter queue.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ListP3_{T}")]
pub struct ListP3<T> {
    /// The records.
    pub data: Vec<T>,
    /// Where they stand in the list.
    pub pagination: PaginationP3,
}

/// The pagination of P3.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaginationP3 {
    /// The page size.
    pub limit: u32,
    /// The cursor of the next page.
    pub cursor: Option<String>,
}

impl<T> ListP3<T> {
    /// The answer to this request.
    #[must_use]
    pub fn new(page: Page<T>, asked: &PageRequest) -> Self {
        Self {
            pagination: PaginationP3 {
                limit: asked.limit,
                cursor: page.next.map(|c| c.0),
            },
            data: page.items,
        }
    }
}

/// P4: records and the cursor of the next page.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ListP4_{T}")]
pub struct ListP4<T> {
    /// The records.
    pub data: Vec<T>,
    /// The cursor of the next page.
    pub cursor: Option<String>,
}

impl<T> From<Page<T>> for ListP4<T> {
    fn from(page: Page<T>) -> Self {
        Self {
            data: page.items,
            cursor: page.next.map(|c| c.0),
        }
    }
}

/// P5: as P4, and whether another page follows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ListP5_{T}")]
pub struct ListP5<T> {
    /// The records.
    pub data: Vec<T>,
    /// The cursor of the next page.
    pub cursor: Option<String>,
    /// Whether there is one.
    pub has_more: bool,
}

impl<T> From<Page<T>> for ListP5<T> {
    fn from(page: Page<T>) -> Self {
        let has_more = page.next.is_some();
        let ListP4 { data, cursor } = page.into();
        Self {
            data,
            cursor,
            has_more,
        }
    }
}
