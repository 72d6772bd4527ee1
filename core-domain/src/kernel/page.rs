//! Pages of lists. Always keyset pages: a cursor names the last row seen, never an offset.

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
}

impl PageRequest {
    /// The first page of the given size.
    #[must_use]
    pub fn first(limit: u32) -> Self {
        Self {
            limit,
            cursor: None,
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
