//! The values of columns.

use std::sync::Arc;

/// The value of a column. Deliberately few types: every engine must agree on each of them to the last bit.
///
/// The order is the one every engine sorts by: text by its bytes, `false` before `true`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// SQL's NULL.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer; instants are milliseconds since the epoch.
    Int(i64),
    /// Text; JSON is kept as text.
    Text(Arc<str>),
}

impl Value {
    /// A text value.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(Arc::from(text))
    }

    /// The text, if it is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The integer, if it is one.
    #[must_use]
    pub const fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// Tells whether it is NULL.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

/// A row: one value for each column of its table, in the table's order.
pub type Row = Vec<Value>;
