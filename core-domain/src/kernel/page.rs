//! Pages of lists. All pages are keyset pages: a cursor contains the position of the last row, never an offset.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

/// An opaque position in a list. Only the store creates and reads cursors. A cursor is valid only for the query that it
/// was created for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(pub String);

/// Selects a page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageQuery {
    /// Maximum number of records of the page; at least 1.
    pub limit: u32,
    /// The end of the previous page; `None` for the first page.
    pub cursor: Option<Cursor>,
    /// The number of matching records, if the caller knows it. The total in a cursor takes precedence.
    pub total: Total,
}

/// The knowledge of a list's caller about the number of matching records. The store adds the number of staged records
/// ([`Repository::list_staged`]) to every total.
///
/// [`Repository::list_staged`]: crate::port::Repository::list_staged
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Total {
    /// The number is unknown; the store counts the records.
    #[default]
    Unknown,
    /// The number of matching records, without the staged ones.
    Known(u64),
    /// The version of the append-only list from which the query selects. The store counts a record only once, and after
    /// that only the records that were added since.
    AtVersion(ListVersion),
}

/// The version of an append-only list. Two reads of the list at the same version see the same records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListVersion {
    /// The number of records that were ever added to the list, without the staged ones.
    pub added: u64,
    /// The number of records that were removed from the list.
    pub removed: u64,
}

impl PageQuery {
    /// Returns a request for the first page with at most `limit` records.
    #[must_use]
    pub fn first(limit: u32) -> Self {
        Self {
            limit,
            cursor: None,
            total: Total::Unknown,
        }
    }

    /// Returns the same request for a response without a total, so that the store does not count the records. The
    /// total of the page is 0.
    #[must_use]
    pub fn without_count(self) -> Self {
        Self {
            total: Total::Known(0),
            ..self
        }
    }
}

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The records of the page, in the order of the list.
    pub items: Vec<T>,
    /// The start of the next page; `None` on the last page.
    pub next: Option<Cursor>,
    /// The number of matching records at the time the first page was read.
    pub total: u64,
}

impl<T> Page<T> {
    /// Returns an empty last page, for callers without access to any record.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            items: Vec::new(),
            next: None,
            total: 0,
        }
    }

    /// Applies a function to each record of the page.
    pub fn map<U>(self, f: impl FnMut(T) -> U) -> Page<U> {
        Page {
            items: self.items.into_iter().map(f).collect(),
            next: self.next,
            total: self.total,
        }
    }
}

/// The first records of a list that has no cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounded<T> {
    /// The first records, as many as fit into the byte budget of a page; at least one if any match.
    pub items: Vec<T>,
    /// `true` if the list has more records than `items`.
    pub has_more: bool,
}

/// The query of a list that is returned in one page if it fits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct WholeListQuery {
    /// Maximum number of records of the page; values above 100 count as 100. If absent, the page contains as many
    /// records as fit.
    #[serde(default)]
    pub limit: Option<Limit>,
    /// The cursor from the previous page. If absent, the list starts with its first record.
    #[serde(default)]
    pub cursor: Option<Cursor>,
}

impl WholeListQuery {
    /// Returns the requested page, with at most `most` records if the query has no limit.
    #[must_use]
    pub fn page(&self, most: u32) -> PageQuery {
        PageQuery {
            limit: self.limit.map_or(most, |limit| limit.0),
            cursor: self.cursor.clone(),
            total: Total::Unknown,
        }
    }
}

/// Maximum number of records of a page: 1 to 100. Larger values are read as 100; the schema rejects smaller values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(pub u32);

impl Limit {
    /// The page size if the request has none.
    pub const DEFAULT: Self = Self(50);
}

impl Default for Limit {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wanted = u64::deserialize(deserializer)?;
        Ok(Self(u32::try_from(wanted.clamp(1, 100)).unwrap_or(100)))
    }
}

impl JsonSchema for Limit {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "default": Self::DEFAULT.0,
            "description": "Maximum number of records of the page. Values above 100 count as 100." })
    }
}

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

impl JsonSchema for Cursor {
    fn schema_name() -> Cow<'static, str> {
        "Cursor".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "maxLength": 4096, "pattern": "^[A-Za-z0-9_-]*$", "examples": ["b3BhcXVl"],
            "description": "The cursor from the response with the previous page." })
    }
}

/// The query parameters of a list: the page and the filters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct ListQuery<F = NoFilter> {
    /// Maximum number of records of the page. Values above 100 count as 100. Default: 50.
    #[serde(default)]
    pub limit: Limit,
    /// The cursor from the previous page. If absent, the list starts with its first record.
    #[serde(default)]
    pub cursor: Option<Cursor>,
    /// The filters of the list; each one is a query parameter of its own.
    #[serde(flatten)]
    pub filter: F,
}

/// The filters of a list that has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct NoFilter {}

/// The filter of a list that omits deleted records by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletedFilter {
    /// Whether the list includes deleted records. Ignored unless the caller is an operator. Default: `false`.
    #[serde(default)]
    pub include_deleted: bool,
}

impl<F> ListQuery<F> {
    /// Returns the requested page for a response without a total, see [`PageQuery::without_count`].
    #[must_use]
    pub fn uncounted_page(&self) -> PageQuery {
        self.page().without_count()
    }

    /// Returns the requested page.
    #[must_use]
    pub fn page(&self) -> PageQuery {
        PageQuery {
            limit: self.limit.0,
            cursor: self.cursor.clone(),
            total: Total::Unknown,
        }
    }
}
