//! The description of a table, from which SQL, in-memory indexes and checks are derived.

use core_domain::kernel::StoreError;

use crate::value::{ReadRow, Row, Value, ValueRef};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A boolean.
    Bool,
    /// A signed 64-bit integer.
    Int,
    /// Text, sorted by its bytes.
    Text,
    /// JSON, kept as text; never filtered or sorted by.
    Json,
}

impl Type {
    /// Tells whether the value is of this type; NULL is of every type. Text with the character NUL is of none, because
    /// Postgres cannot store it.
    #[must_use]
    pub fn accepts(self, value: &Value) -> bool {
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
    /// Its type.
    pub kind: Type,
    /// Whether it may be NULL.
    pub nullable: bool,
}

/// The predicate of a partial index, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexPredicate {
    /// The column is NULL.
    IsNull(&'static str),
    /// The column is not NULL.
    NotNull(&'static str),
    /// The column equals this text.
    Is(&'static str, &'static str),
    /// The column is one of these texts.
    OneOf(&'static str, &'static [&'static str]),
}

impl IndexPredicate {
    pub(crate) const fn column(self) -> &'static str {
        match self {
            Self::IsNull(column)
            | Self::NotNull(column)
            | Self::Is(column, _)
            | Self::OneOf(column, _) => column,
        }
    }

    /// Tells whether a row with this value in the column meets it.
    #[must_use]
    pub fn holds(self, value: &Value) -> bool {
        match self {
            Self::IsNull(_) => value.is_null(),
            Self::NotNull(_) => !value.is_null(),
            Self::Is(_, text) => value.as_text() == Some(text),
            Self::OneOf(_, texts) => value.as_text().is_some_and(|text| texts.contains(&text)),
        }
    }
}

/// A unique index: columns whose values no two rows share. As in SQL, a row with a NULL in one of them is not covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unique {
    /// The name a conflict is reported under.
    pub name: &'static str,
    /// The columns.
    pub columns: &'static [&'static str],
    /// Covers only rows for which all of these are true; a partial index unless empty.
    pub predicates: &'static [IndexPredicate],
}

impl Unique {
    /// Tells whether a change of the column can violate it.
    #[must_use]
    pub fn depends_on(&self, column: &str) -> bool {
        let in_predicate = |predicate: &IndexPredicate| predicate.column() == column;
        self.columns.contains(&column) || self.predicates.iter().any(in_predicate)
    }
}

/// An index that is not unique: for the queries that fix its first columns and sort by the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Index {
    /// The columns; the key is added.
    pub columns: &'static [&'static str],
    /// Columns it holds besides: a count that depends on these and the first ones alone is made without the rows.
    pub includes: &'static [&'static str],
    /// Covers only rows for which all of these are true; a partial index unless empty. A query uses it when it says the
    /// same, with the same values in the same order.
    pub predicates: &'static [IndexPredicate],
}

impl Index {
    /// An index over every row.
    #[must_use]
    pub const fn on(columns: &'static [&'static str]) -> Self {
        Self {
            columns,
            includes: &[],
            predicates: &[],
        }
    }

    /// Only over rows for which all of these are true.
    #[must_use]
    pub const fn filter_by(self, predicates: &'static [IndexPredicate]) -> Self {
        Self { predicates, ..self }
    }
}

/// A table. The first column is the key (text), the last is [`VERSION`] (integer).
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns, in order.
    pub columns: &'static [Column],
    /// Its unique indexes, besides the key.
    pub uniques: &'static [Unique],
    /// Its other indexes.
    pub indexes: &'static [Index],
    /// The column with the key of the row's parent, for tree walks.
    pub parent: Option<&'static str>,
    /// Whether rows are only added: units of work refuse to change or delete one, and so do triggers of databases.
    pub append_only: bool,
}

/// The name of the last column of every table.
pub const VERSION: &str = "row_version";

/// The name of the column with the platform a row belongs to, in tables that have it.
pub const PLATFORM: &str = "platform_id";

impl Table {
    /// The name of the key column.
    #[must_use]
    pub fn key(&self) -> &'static str {
        self.columns.first().map_or("", |column| column.name)
    }

    /// The index of the column in a row.
    #[must_use]
    pub fn column_index(&self, column: &str) -> Option<usize> {
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
            .ok_or_else(|| StoreError::backend(format!("table {} has no column {name}", self.name)))
    }

    /// The row's value in the column; NULL when there is no such column.
    #[must_use]
    pub fn value<'r>(&self, row: &'r [Value], column: &str) -> &'r Value {
        self.column_index(column)
            .and_then(|at| row.get(at))
            .unwrap_or(&Value::Null)
    }

    /// The platform the row belongs to, if it belongs to one.
    #[must_use]
    pub fn platform_of<'r>(&self, row: &'r [Value]) -> Option<&'r str> {
        self.value(row, PLATFORM).as_text()
    }

    /// The type of the column; that of text when there is no such column.
    #[must_use]
    pub fn kind_of(&self, column: &str) -> Type {
        let column = self.columns.iter().find(|c| c.name == column);
        column.map_or(Type::Text, |column| column.kind)
    }

    /// The text as an index predicate on the column spells it, if there is one. Engines that plan by the text of a
    /// statement must say it literally: a bound value tells a planner nothing.
    #[must_use]
    pub fn index_literal(&self, column: &str, text: &str) -> Option<&'static str> {
        let uniques = self.uniques.iter().flat_map(|unique| unique.predicates);
        let indexes = self.indexes.iter().flat_map(|index| index.predicates);
        uniques
            .chain(indexes)
            .find_map(|predicate| match *predicate {
                IndexPredicate::Is(of, one) if of == column && one == text => Some(one),
                IndexPredicate::OneOf(of, texts) if of == column => {
                    texts.iter().copied().find(|one| *one == text)
                }
                _ => None,
            })
    }

    /// A copy of a row that lies in an engine.
    ///
    /// # Errors
    /// When the engine cannot tell a value.
    pub fn copy_row(&self, row: &dyn ReadRow) -> Result<Row, StoreError> {
        let value = |at| row.read(at).map(ValueRef::to_value);
        (0..self.columns.len()).map(value).collect()
    }

    /// Checks that the row has a value of the right type for every column.
    ///
    /// # Errors
    /// [`StoreError::Backend`] names the first column with a value of the wrong type.
    pub fn check_row(&self, row: &Row) -> Result<(), StoreError> {
        if row.len() != self.columns.len() {
            return Err(StoreError::backend(format!(
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

    /// Checks that the value can be stored in the column.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when it is of another type, or NULL in a column that is not nullable.
    pub fn check_value(&self, column: &Column, value: &Value) -> Result<(), StoreError> {
        if column.kind.accepts(value) && (column.nullable || !value.is_null()) {
            return Ok(());
        }
        Err(StoreError::backend(format!(
            "{}.{} cannot store this value",
            self.name, column.name
        )))
    }
}
