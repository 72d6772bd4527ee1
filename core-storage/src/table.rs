//! The description of a table. SQL, in-memory indexes and checks are derived from it.

use core_domain::kernel::{StoreError, is_uuid};

use crate::value::{ReadRow, Row, Value, ValueRef};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// A boolean value.
    Bool,
    /// A signed 64-bit integer.
    Int,
    /// Text, sorted by its bytes.
    Text,
    /// The text of a UUID in the form of [`is_uuid`]. Postgres stores its 16 bytes, which sort equally.
    Uuid,
    /// JSON, stored as text. It is never used to filter or sort.
    Json,
}

impl Type {
    /// Returns whether the column type can store the value. Every type accepts NULL. No type accepts text with a NUL
    /// character, because Postgres cannot store it.
    #[must_use]
    pub fn accepts(self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Null) | (Self::Bool, Value::Bool(_)) | (Self::Int, Value::Int(_)) => true,
            (Self::Text | Self::Json, Value::Text(text)) => !text.contains('\0'),
            (Self::Uuid, Value::Text(text)) => is_uuid(text),
            _ => false,
        }
    }

    /// Returns whether a filter can compare the column with the value. UUIDs are compared with any text, because ids of requests
    /// can be any text.
    #[must_use]
    pub fn compares_with(self, value: &Value) -> bool {
        match self {
            Self::Uuid => Self::Text.accepts(value),
            other => other.accepts(value),
        }
    }
}

/// A column of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name of the column. Any word is valid, because the name is always quoted.
    pub name: &'static str,
    /// The type of the column.
    pub kind: Type,
    /// Whether the column may be NULL.
    pub nullable: bool,
}

/// A predicate of a partial index, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexPredicate {
    /// The column is NULL.
    IsNull(&'static str),
    /// The column is not NULL.
    NotNull(&'static str),
    /// The column equals this text.
    Is(&'static str, &'static str),
    /// The column equals one of these texts.
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

    /// Returns whether the predicate is true for a row with this value in the column.
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

/// A unique index: no two rows have the same values in its columns. As in SQL, it does not cover rows with a NULL in
/// one of the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unique {
    /// The name that a conflict reports.
    pub name: &'static str,
    /// The columns of the index.
    pub columns: &'static [&'static str],
    /// The index covers only rows for which all of these predicates are true. An empty list covers all rows.
    pub predicates: &'static [IndexPredicate],
}

impl Unique {
    /// Returns whether a change of the column can violate the index.
    #[must_use]
    pub fn depends_on(&self, column: &str) -> bool {
        let in_predicate = |predicate: &IndexPredicate| predicate.column() == column;
        self.columns.contains(&column) || self.predicates.iter().any(in_predicate)
    }
}

/// An index that is not unique. It serves queries that fix its first columns and sort by the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Index {
    /// The columns of the index, without the key, which is appended. An index without columns is sorted by the key alone.
    pub columns: &'static [&'static str],
    /// Additional columns that the index stores. A count that depends only on columns of the index reads no rows.
    pub includes: &'static [&'static str],
    /// The index covers only rows for which all of these predicates are true. An empty list covers all rows. A query
    /// uses a partial index if its filter contains the same predicates, with the same values in the same order.
    pub predicates: &'static [IndexPredicate],
}

impl Index {
    /// Creates an index over all rows.
    #[must_use]
    pub const fn on(columns: &'static [&'static str]) -> Self {
        Self {
            columns,
            includes: &[],
            predicates: &[],
        }
    }

    /// Limits the index to rows for which all of these predicates are true.
    #[must_use]
    pub const fn filter_by(self, predicates: &'static [IndexPredicate]) -> Self {
        Self { predicates, ..self }
    }
}

/// A table. The first column is the key (text or UUID), the last is [`VERSION`] (integer).
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// The name of the table.
    pub name: &'static str,
    /// The columns, in order.
    pub columns: &'static [Column],
    /// The unique indexes, without the key.
    pub uniques: &'static [Unique],
    /// The other indexes.
    pub indexes: &'static [Index],
    /// The column that contains the key of the row's parent, for tree walks; `None` if the rows form no tree.
    pub parent: Option<&'static str>,
    /// If `true`, rows are only added: units of work and database triggers refuse to change or delete them.
    pub append_only: bool,
    /// The bound of the rows that may be removed although the table is append-only; `None` if no row may be removed. The
    /// keys of such a table start with the time of creation.
    pub archive: Option<ArchiveBound>,
}

/// The column whose largest value is the bound of archived rows: rows with smaller keys are in an archive, so
/// [`RowTx::remove_archived`](crate::RowTx::remove_archived) may remove them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveBound {
    /// The table of the archives.
    pub table: &'static str,
    /// The column of that table.
    pub column: &'static str,
}

/// The name of the last column of every table.
pub const VERSION: &str = "row_version";

/// The name of the column that contains the platform of a row, in tables that have it.
pub const PLATFORM: &str = "platform_id";

impl Table {
    /// Returns the name of the key column.
    #[must_use]
    pub fn key(&self) -> &'static str {
        self.columns.first().map_or("", |column| column.name)
    }

    /// Returns whether a row can have this key.
    #[must_use]
    pub fn accepts_key(&self, key: &Value) -> bool {
        self.kind_of(self.key()).accepts(key)
    }

    /// Returns the index of the column in a row.
    #[must_use]
    pub fn column_index(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.name == column)
    }

    /// Returns the column with this name.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the column does not exist, which is a mistake in the query.
    pub fn column(&self, name: &str) -> Result<&'static Column, StoreError> {
        self.columns
            .iter()
            .find(|c| c.name == name)
            .ok_or_else(|| StoreError::backend(format!("table {} has no column {name}", self.name)))
    }

    /// Returns the value of the column in the row; NULL if the column does not exist.
    #[must_use]
    pub fn value<'r>(&self, row: &'r [Value], column: &str) -> &'r Value {
        self.column_index(column)
            .and_then(|at| row.get(at))
            .unwrap_or(&Value::Null)
    }

    /// Returns the platform that owns the row, if there is one.
    #[must_use]
    pub fn platform_of<'r>(&self, row: &'r [Value]) -> Option<&'r str> {
        self.value(row, PLATFORM).as_text()
    }

    /// Returns the type of the column; `Text` if the column does not exist.
    #[must_use]
    pub fn kind_of(&self, column: &str) -> Type {
        let column = self.columns.iter().find(|c| c.name == column);
        column.map_or(Type::Text, |column| column.kind)
    }

    /// Returns the text if an index predicate on the column contains it. The statement must contain it as a literal,
    /// because a planner does not see bound values.
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

    /// Copies a row out of the engine.
    ///
    /// # Errors
    /// [`StoreError`] if the engine cannot read a value of the row.
    pub fn copy_row(&self, row: &dyn ReadRow) -> Result<Row, StoreError> {
        let value = |at| row.read(at).map(ValueRef::to_value);
        (0..self.columns.len()).map(value).collect()
    }

    /// Checks that the row has a value of the right type for every column.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the number of values is wrong, or with the name of the first column whose value has
    /// the wrong type.
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
    /// [`StoreError::Backend`] if the value has another type, or is NULL and the column is not nullable.
    pub fn check_value(&self, column: &Column, value: &Value) -> Result<(), StoreError> {
        if column.kind.accepts(value) && (column.nullable || !value.is_null()) {
            return Ok(());
        }
        Err(StoreError::backend(format!(
            "{}.{} cannot store this value: it has the wrong type or is NULL",
            self.name, column.name
        )))
    }
}
