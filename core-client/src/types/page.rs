//! The pages of lists.

use serde::{Deserialize, Serialize};

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Page<T> {
    /// The records of the page, in the order of the list.
    pub data: Vec<T>,
    /// The cursor of the next page; `None` on the last page.
    pub cursor: Option<String>,
}

/// The part of a list that a request asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageQuery {
    /// Maximum number of records of the page, 1 to 100. Default: that of the list, 20 or 50.
    pub limit: Option<u32>,
    /// The cursor of the page. Default: the first page.
    pub cursor: Option<String>,
}

/// A list with its total number of records.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct TotalList<T> {
    data: Vec<T>,
    pagination: TotalPagination,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct TotalPagination {
    next_cursor: Option<String>,
}

impl<T> From<TotalList<T>> for Page<T> {
    fn from(list: TotalList<T>) -> Self {
        Self {
            data: list.data,
            cursor: list.pagination.next_cursor,
        }
    }
}

/// A list with the cursor of the next page.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CursorList<T> {
    data: Vec<T>,
    cursor: Option<String>,
}

impl<T> From<CursorList<T>> for Page<T> {
    fn from(list: CursorList<T>) -> Self {
        Self {
            data: list.data,
            cursor: list.cursor,
        }
    }
}

/// A list that is complete.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct CompleteList<T> {
    pub(crate) data: Vec<T>,
}
