//! The description of a table: the one source of SQL, index maps and checks.

use core_domain::port::StoreError;

use crate::filter::Filter;
use crate::value::{Row, Value};

/// What a column may hold. `Json` is text that says it is JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Yes or no.
    Bool,
    /// A signed 64-bit number.
    Int,
    /// Text, sorted by its bytes.
    Text,
    /// JSON, kept as text; never filtered or sorted by.
    Json,
}

impl Type {
    /// Tells whether the value is of this type; nothing is of every type. Text with the character NUL is of none,
    /// because Postgres cannot hold it.
    #[must_use]
    pub fn holds(self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Null) | (Self::Bool, Value::Bool(_)) | (Self::Int, Value::Int(_)) => true,
            (Self::Text | Self::Json, Value::Text(text)) => !text.contains('\0'),
            _ => false,
        }
    }
}

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name; quoted wherever it is used, so any word will do.
    pub name: &'static str,
    /// What it may hold.
    pub kind: Type,
    /// Whether it may hold nothing.
    pub nullable: bool,
}

/// A condition on the rows that a unique set covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// The column holds nothing.
    IsNull(&'static str),
    /// The column holds this text.
    Is(&'static str, &'static str),
    /// The column holds one of these texts.
    OneOf(&'static str, &'static [&'static str]),
}

impl Only {
    fn filter(self) -> Filter {
        match self {
            Self::IsNull(column) => Filter::IsNull(column),
            Self::Is(column, text) => Filter::eq(column, text),
            Self::OneOf(column, texts) => Filter::one_of(column, texts.iter().copied()),
        }
    }

    pub(crate) const fn column(self) -> &'static str {
        match self {
            Self::IsNull(column) | Self::Is(column, _) | Self::OneOf(column, _) => column,
        }
    }
}

/// Columns whose values no two rows share. A row with nothing in one of them is not covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unique {
    /// The name a conflict is reported under.
    pub name: &'static str,
    /// The columns.
    pub columns: &'static [&'static str],
    /// Covers only rows that meet all of these.
    pub only: &'static [Only],
}

impl Unique {
    /// Which rows it covers; the empty conjunction when all.
    #[must_use]
    pub fn filter(&self) -> Filter {
        Filter::And(self.only.iter().map(|only| only.filter()).collect())
    }

    /// Tells whether a change of the column can break it.
    #[must_use]
    pub fn depends_on(&self, column: &str) -> bool {
        self.columns.contains(&column) || self.only.iter().any(|only| only.column() == column)
    }
}

/// A table. The first column is the key (text), the last is [`VERSION`] (number).
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns, in order.
    pub columns: &'static [Column],
    /// Its unique sets, besides the key.
    pub uniques: &'static [Unique],
    /// Columns by which rows are looked for, each list followed by the key.
    pub indexes: &'static [&'static [&'static str]],
    /// The column with the key of the row's parent, for tree walks.
    pub parent: Option<&'static str>,
}

/// The name of the last column of every table.
pub const VERSION: &str = "row_version";

impl Table {
    /// The name of the key column.
    #[must_use]
    pub fn key(&self) -> &'static str {
        self.columns.first().map_or("", |column| column.name)
    }

    /// Where the column is in a row.
    #[must_use]
    pub fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == column)
    }

    /// The column of this name.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when there is none: a mistake in a query.
    pub fn column(&self, name: &str) -> Result<&'static Column, StoreError> {
        self.columns
            .iter()
            .find(|c| c.name == name)
            .ok_or_else(|| StoreError::Backend(format!("table {} has no column {name}", self.name)))
    }

    /// The row's value in the column; nothing when there is no such column.
    #[must_use]
    pub fn value<'r>(&self, row: &'r [Value], column: &str) -> &'r Value {
        self.position(column)
            .and_then(|at| row.get(at))
            .unwrap_or(&Value::Null)
    }

    /// Checks that the row has a value of the right type for every column.
    ///
    /// # Errors
    /// [`StoreError::Backend`] names the first column that is wrong.
    pub fn check_row(&self, row: &Row) -> Result<(), StoreError> {
        if row.len() != self.columns.len() {
            return Err(StoreError::Backend(format!(
                "a row of {} has {} values, the table {} columns",
                self.name,
                row.len(),
                self.columns.len()
            )));
        }
        self.columns
            .iter()
            .zip(row)
            .try_for_each(|(column, value)| self.check_value(column, value))
    }

    /// Checks that the value may stand in the column.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when it is of another type, or nothing where something must be.
    pub fn check_value(&self, column: &Column, value: &Value) -> Result<(), StoreError> {
        if column.kind.holds(value) && (column.nullable || !value.is_null()) {
            return Ok(());
        }
        Err(StoreError::Backend(format!(
            "{}.{} cannot hold this value",
            self.name, column.name
        )))
    }
}
