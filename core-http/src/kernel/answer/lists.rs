//! The shapes of lists: P1 to P5 of the interface, and lists without pages.

use core_domain::kernel::{Page, PageQuery, Stored};
use schemars::JsonSchema;
use serde::Serialize;

/// The confirmation of an operation that returns no record, such as a deletion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Success {
    /// Always `true`; a failure is an error response.
    pub success: bool,
}

impl Success {
    /// The only value of this type.
    pub const YES: Self = Self { success: true };
}

/// A complete list, without pages.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Data_{T}")]
pub struct Data<T> {
    /// All records of the list.
    pub data: Vec<T>,
}

/// The beginning of a list that has no pages.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "BoundedData_{T}")]
pub(crate) struct BoundedData<T> {
    /// The first records of the list.
    pub(crate) data: Vec<T>,
    /// `true` if records are left out because the response would be too large; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) has_more: bool,
}

/// A list that has more than one page only if it is very large.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Counted_{T}")]
pub struct CountedList<T> {
    /// The records of this page.
    pub data: Vec<T>,
    /// The number of records on all pages.
    pub total: u64,
    /// The cursor of the next page; `null` if there is none.
    pub cursor: Option<String>,
}

impl<T: Clone> From<Page<Stored<T>>> for CountedList<T> {
    fn from(page: Page<Stored<T>>) -> Self {
        Self {
            data: page.items.into_iter().map(Stored::into_inner).collect(),
            total: page.total,
            cursor: page.next.map(|cursor| cursor.0),
        }
    }
}

/// A page of a list, with the total number of records (shape P1).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ListP1_{T}")]
pub struct ListP1<T> {
    /// The records of this page.
    pub data: Vec<T>,
    /// The position of this page in the list.
    pub pagination: PaginationP1,
}

/// The position of a page in its list (shape P1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaginationP1 {
    /// `true` if there is another page after this one.
    pub has_more: bool,
    /// The cursor of the next page; `null` if there is none.
    pub next_cursor: Option<String>,
    /// The number of matching records at the time of the first page. The cursor contains this number, so all following
    /// pages report the same one. A request without a cursor counts again.
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

/// A page of a list, with its size and both cursors (shape P2).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ListP2_{T}")]
pub struct ListP2<T> {
    /// The records of this page.
    pub data: Vec<T>,
    /// The position of this page in the list.
    pub pagination: PaginationP2,
}

/// The position of a page in its list (shape P2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaginationP2 {
    /// The maximum number of records per page.
    pub limit: u32,
    /// The cursor of this page; `null` for the first page.
    pub cursor: Option<String>,
    /// The cursor of the next page; `null` if there is none.
    pub next_cursor: Option<String>,
    /// The number of records on this page.
    pub count: usize,
}

impl<T> ListP2<T> {
    /// Creates the response to this request from its page.
    #[must_use]
    pub fn new(page: Page<T>, asked: &PageQuery) -> Self {
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

/// A page of a list, with its size and the next cursor (shape P3).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ListP3_{T}")]
pub struct ListP3<T> {
    /// The records of this page.
    pub data: Vec<T>,
    /// The position of this page in the list.
    pub pagination: PaginationP3,
}

/// The position of a page in its list (shape P3).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaginationP3 {
    /// The maximum number of records per page.
    pub limit: u32,
    /// The cursor of the next page; `null` if there is none.
    pub cursor: Option<String>,
}

impl<T> ListP3<T> {
    /// Creates the response to this request from its page.
    #[must_use]
    pub fn new(page: Page<T>, asked: &PageQuery) -> Self {
        Self {
            pagination: PaginationP3 {
                limit: asked.limit,
                cursor: page.next.map(|c| c.0),
            },
            data: page.items,
        }
    }
}

/// A page of a list, with the next cursor (shape P4).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ListP4_{T}")]
pub struct ListP4<T> {
    /// The records of this page.
    pub data: Vec<T>,
    /// The cursor of the next page; `null` if there is none.
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

/// A page of a list, with the next cursor and whether there is one (shape P5).
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "ListP5_{T}")]
pub struct ListP5<T> {
    /// The records of this page.
    pub data: Vec<T>,
    /// The cursor of the next page; `null` if there is none.
    pub cursor: Option<String>,
    /// `true` if there is another page after this one.
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
