//! Pages of lists. Always keyset pages: a cursor names the last row seen, never an offset.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};

/// An opaque place in a list, made and read by the store alone. Bound to the query it came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(pub String);

/// Which page of a list is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// How many records at the most; at least 1.
    pub limit: u32,
    /// Where the last page ended; `None` for the first page.
    pub cursor: Option<Cursor>,
    /// What is known of how many records match. What a cursor says goes before it.
    pub total: Total,
}

/// What whoever asks for a page knows of how many records match. Staged ones ([`Repository::staged`]) are counted besides.
///
/// [`Repository::staged`]: crate::port::Repository::staged
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Total {
    /// Nothing: the store counts.
    #[default]
    Unknown,
    /// So many do.
    Known(u64),
    /// A number that is another one after every change of what the list may show, for whoever sees that change. The store
    /// counts once at each.
    AtVersion(u64),
}

impl PageRequest {
    /// The first page of the given size.
    #[must_use]
    pub fn first(limit: u32) -> Self {
        Self {
            limit,
            cursor: None,
            total: Total::Unknown,
        }
    }
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The records, in the order of the list.
    pub items: Vec<T>,
    /// Where the next page begins; `None` when this is the last one.
    pub next: Option<Cursor>,
    /// How many records matched the query when its first page was read.
    pub total: u64,
}

impl<T> Page<T> {
    /// A page of nothing, for callers who reach nothing.
    #[must_use]
    pub const fn empty() -> Self {
        Self {
            items: Vec::new(),
            next: None,
            total: 0,
        }
    }

    /// The same page of other things.
    pub fn map<U>(self, f: impl FnMut(T) -> U) -> Page<U> {
        Page {
            items: self.items.into_iter().map(f).collect(),
            next: self.next,
            total: self.total,
        }
    }
}

/// The beginning of a list that has no cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounded<T> {
    /// The first records, as many as fit into the byte budget of a page; one at least.
    pub items: Vec<T>,
    /// Whether records are left out.
    pub has_more: bool,
}

/// The query of a list that is answered whole unless it is very large.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct WholeListQuery {
    /// The maximum number of records of the page; all that fit if absent.
    #[serde(default)]
    pub limit: Option<Limit>,
    /// The cursor of the page; the first page if absent.
    #[serde(default)]
    pub cursor: Option<Cursor>,
}

impl WholeListQuery {
    /// Returns the page that the query names, with at most `most` records.
    #[must_use]
    pub fn page(&self, most: u32) -> PageRequest {
        PageRequest {
            limit: self.limit.map_or(most, |limit| limit.0),
            cursor: self.cursor.clone(),
            total: Total::Unknown,
        }
    }
}

/// A page size: 1 to 100, more is clamped to 100, less is refused by the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit(pub u32);

impl Limit {
    /// The page size when none is asked for.
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
            "description": "How many records; more than 100 is taken as 100." })
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
            "description": "Where the last page ended, as its answer says." })
    }
}

/// The query of every list: which page, and which records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct ListQuery<F = NoFilter> {
    /// How many records a page has at the most.
    #[serde(default)]
    pub limit: Limit,
    /// Where the page begins; the beginning of the list when not said.
    #[serde(default)]
    pub cursor: Option<Cursor>,
    /// Which records.
    #[serde(flatten)]
    pub filter: F,
}

/// A list without filters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct NoFilter {}

/// A list that leaves deleted records out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeletedFilter {
    /// Deleted records too; for operators.
    #[serde(default)]
    pub include_deleted: bool,
}

impl<F> ListQuery<F> {
    /// The page asked for.
    #[must_use]
    pub fn page(&self) -> PageRequest {
        PageRequest {
            limit: self.limit.0,
            cursor: self.cursor.clone(),
            total: Total::Unknown,
        }
    }
}
