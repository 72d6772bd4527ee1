//! The values of columns.

use std::fmt;
use std::sync::Arc;

use core_domain::kernel::StoreError;

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

impl Value {
    /// The value, borrowed.
    #[must_use]
    pub fn as_ref(&self) -> ValueRef<'_> {
        match self {
            Self::Null => ValueRef::Null,
            Self::Bool(yes) => ValueRef::Bool(*yes),
            Self::Int(number) => ValueRef::Int(*number),
            Self::Text(text) => ValueRef::Text(text),
        }
    }
}

/// The value of a column where it lies: in a row of the memory engine, in the answer of a database. `Debug` shows its type
/// alone, because drivers log what is bound.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueRef<'a> {
    /// SQL's NULL.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer; instants are milliseconds since the epoch.
    Int(i64),
    /// Text; JSON is kept as text.
    Text(&'a str),
}

impl fmt::Debug for ValueRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "Null",
            Self::Bool(_) => "Bool(_)",
            Self::Int(_) => "Int(_)",
            Self::Text(_) => "Text(_)",
        })
    }
}

impl<'a> ValueRef<'a> {
    /// A copy of its own.
    #[must_use]
    pub fn to_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(yes) => Value::Bool(yes),
            Self::Int(number) => Value::Int(number),
            Self::Text(text) => Value::text(text),
        }
    }

    /// The text, if it is one.
    #[must_use]
    pub const fn as_text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The boolean, if it is one.
    #[must_use]
    pub const fn as_bool(self) -> Option<bool> {
        match self {
            Self::Bool(yes) => Some(yes),
            _ => None,
        }
    }

    /// The integer, if it is one.
    #[must_use]
    pub const fn as_int(self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(number),
            _ => None,
        }
    }

    /// Tells whether it is NULL.
    #[must_use]
    pub const fn is_null(self) -> bool {
        matches!(self, Self::Null)
    }
}

/// A row where it lies: records are decoded from it without a copy in between.
pub trait ReadRow {
    /// The value of the column at this index of the table's columns; NULL behind the last one.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the engine holds a value of another type there.
    fn read(&self, at: usize) -> Result<ValueRef<'_>, StoreError>;
}

impl ReadRow for Row {
    fn read(&self, at: usize) -> Result<ValueRef<'_>, StoreError> {
        Ok(self.get(at).map_or(ValueRef::Null, Value::as_ref))
    }
}

impl ReadRow for Arc<[Value]> {
    fn read(&self, at: usize) -> Result<ValueRef<'_>, StoreError> {
        Ok(self.get(at).map_or(ValueRef::Null, Value::as_ref))
    }
}

/// What is shown the rows of a query, one after the other, while they lie in the engine. An error ends the query and is
/// its answer.
pub type Visit<'a> = &'a mut (dyn FnMut(&dyn ReadRow) -> Result<(), StoreError> + Send);

/// A row: one value for each column of its table, in the table's order.
pub type Row = Vec<Value>;
