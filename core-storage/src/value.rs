//! The values of columns.

use std::fmt;
use std::sync::Arc;

use core_domain::kernel::StoreError;

/// The value of a column. There are few types on purpose: every engine must treat each of them identically.
///
/// The order is the sort order of every engine: text by its bytes, `false` before `true`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// The NULL of SQL.
    Null,
    /// A boolean value.
    Bool(bool),
    /// An integer. A time is stored as milliseconds since the Unix epoch.
    Int(i64),
    /// Text. JSON is stored as text.
    Text(Arc<str>),
}

impl Value {
    /// Creates a text value.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::Text(Arc::from(text))
    }

    /// Returns the text; `None` if the value is not text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the integer; `None` if the value is not an integer.
    #[must_use]
    pub const fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns whether the value is NULL.
    #[must_use]
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

impl Value {
    /// Borrows the value.
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

/// A borrowed value of a column, for example in a row of the memory engine or in a result of a database. `Debug` prints
/// only its type, because drivers log parameters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueRef<'a> {
    /// The NULL of SQL.
    Null,
    /// A boolean value.
    Bool(bool),
    /// An integer. A time is stored as milliseconds since the Unix epoch.
    Int(i64),
    /// Text. JSON is stored as text.
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
    /// Copies the value.
    #[must_use]
    pub fn to_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(yes) => Value::Bool(yes),
            Self::Int(number) => Value::Int(number),
            Self::Text(text) => Value::text(text),
        }
    }

    /// Returns the text; `None` if the value is not text.
    #[must_use]
    pub const fn as_text(self) -> Option<&'a str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the boolean; `None` if the value is not a boolean.
    #[must_use]
    pub const fn as_bool(self) -> Option<bool> {
        match self {
            Self::Bool(yes) => Some(yes),
            _ => None,
        }
    }

    /// Returns the integer; `None` if the value is not an integer.
    #[must_use]
    pub const fn as_int(self) -> Option<i64> {
        match self {
            Self::Int(number) => Some(number),
            _ => None,
        }
    }

    /// Returns whether the value is NULL.
    #[must_use]
    pub const fn is_null(self) -> bool {
        matches!(self, Self::Null)
    }
}

/// A row inside the engine. Records are decoded from it without a copy.
pub trait ReadRow {
    /// Returns the value of the column at this index; NULL beyond the last column.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the engine has stored a value of another type.
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

/// The visitor that receives the rows of a query, one after the other, while they are inside the engine. If it returns
/// an error, the query stops and returns that error.
pub type Visit<'a> = &'a mut (dyn FnMut(&dyn ReadRow) -> Result<(), StoreError> + Send);

/// A row: one value for each column of its table, in the table's order.
pub type Row = Vec<Value>;
