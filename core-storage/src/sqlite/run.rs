//! Runs statements on a connection.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use core_domain::kernel::StoreError;
use rusqlite::types::{ToSqlOutput, ValueRef as SqliteValue};
use rusqlite::{CachedStatement, Connection, ToSql};

use super::error::statement_error;
use crate::sql::{Bind, MAX_CACHED_TEXT, Statement};
use crate::table::{Column, Type};
use crate::value::{ReadRow, Row, Value, ValueRef, Visit};

/// A value as a parameter for SQLite.
struct Parameter<'v>(ValueRef<'v>);

impl ToSql for Parameter<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let value = match self.0 {
            ValueRef::Null => SqliteValue::Null,
            ValueRef::Bool(yes) => SqliteValue::Integer(i64::from(yes)),
            ValueRef::Int(number) => SqliteValue::Integer(number),
            ValueRef::Text(text) => SqliteValue::Text(text.as_bytes()),
        };
        Ok(ToSqlOutput::Borrowed(value))
    }
}

fn value_of<'b>(bind: &'b Bind<'_>) -> Result<ValueRef<'b>, StoreError> {
    match bind {
        Bind::One(_, value) => Ok(*value),
        Bind::Generated(_, text) => Ok(ValueRef::Text(text)),
        Bind::Array(..) => Err(StoreError::backend("SQLite does not support arrays")),
    }
}

/// A prepared statement, from the connection's cache or for a single use.
enum PreparedStatement<'c> {
    Cached(CachedStatement<'c>),
    Once(rusqlite::Statement<'c>),
}

impl<'c> Deref for PreparedStatement<'c> {
    type Target = rusqlite::Statement<'c>;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Cached(statement) => statement,
            Self::Once(statement) => statement,
        }
    }
}

impl DerefMut for PreparedStatement<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Self::Cached(statement) => statement,
            Self::Once(statement) => statement,
        }
    }
}

fn prepare<'c, 'v>(
    connection: &'c Connection,
    text: &str,
    binds: impl Iterator<Item = Result<ValueRef<'v>, StoreError>>,
) -> Result<PreparedStatement<'c>, StoreError> {
    let prepared = if text.len() > MAX_CACHED_TEXT {
        connection.prepare(text).map(PreparedStatement::Once)
    } else {
        connection
            .prepare_cached(text)
            .map(PreparedStatement::Cached)
    };
    let mut prepared = prepared.map_err(statement_error)?;
    for (at, value) in binds.enumerate() {
        // Placeholders are numbered from 1, in the order in which they are written.
        let bound = prepared.raw_bind_parameter(at + 1, Parameter(value?));
        bound.map_err(statement_error)?;
    }
    Ok(prepared)
}

/// The current row of a query. SQLite owns its values until the next row is read.
struct SqliteRow<'r> {
    row: &'r rusqlite::Row<'r>,
    columns: &'r [Column],
}

impl ReadRow for SqliteRow<'_> {
    fn read(&self, at: usize) -> Result<ValueRef<'_>, StoreError> {
        let Some(column) = self.columns.get(at) else {
            return Ok(ValueRef::Null);
        };
        match (self.row.get_ref(at).map_err(statement_error)?, column.kind) {
            (SqliteValue::Null, _) => Ok(ValueRef::Null),
            (SqliteValue::Integer(number), Type::Bool) => Ok(ValueRef::Bool(number != 0)),
            (SqliteValue::Integer(number), Type::Int) => Ok(ValueRef::Int(number)),
            (SqliteValue::Text(bytes), Type::Text | Type::Uuid | Type::Json) => {
                let text = std::str::from_utf8(bytes).map_err(StoreError::backend)?;
                Ok(ValueRef::Text(text))
            }
            _ => Err(StoreError::backend(format!(
                "{} holds a value of another type",
                column.name
            ))),
        }
    }
}

/// Runs a change. Returns the number of affected rows.
pub(super) fn execute(
    connection: &Connection,
    statement: &Statement<'_>,
) -> Result<u64, StoreError> {
    let mut prepared = prepare(
        connection,
        &statement.text,
        statement.binds.iter().map(value_of),
    )?;
    finish(&mut prepared)
}

fn finish(prepared: &mut PreparedStatement<'_>) -> Result<u64, StoreError> {
    let affected = prepared.raw_execute().map_err(statement_error)?;
    Ok(u64::try_from(affected).unwrap_or(u64::MAX))
}

/// Runs a query and passes its rows to the visitor.
pub(super) fn fetch(
    connection: &Connection,
    statement: &Statement<'_>,
    visit: Visit<'_>,
) -> Result<(), StoreError> {
    let mut prepared = prepare(
        connection,
        &statement.text,
        statement.binds.iter().map(value_of),
    )?;
    show(&mut prepared, statement.columns, visit)
}

fn show(
    prepared: &mut PreparedStatement<'_>,
    columns: &[Column],
    visit: Visit<'_>,
) -> Result<(), StoreError> {
    let mut rows = prepared.raw_query();
    while let Some(row) = rows.next().map_err(statement_error)? {
        visit(&SqliteRow { row, columns })?;
    }
    Ok(())
}

/// Runs a statement that controls a transaction: BEGIN, SAVEPOINT, ..
pub(super) fn control(connection: &Connection, text: &str) -> Result<(), rusqlite::Error> {
    connection.prepare_cached(text)?.raw_execute().map(|_| ())
}

/// Reads one row, which starts the snapshot of a transaction.
pub(super) fn take_snapshot(connection: &Connection) -> Result<(), rusqlite::Error> {
    let mut prepared = connection.prepare_cached("SELECT 1 FROM \"schema_migrations\" LIMIT 1")?;
    prepared.raw_query().next().map(|_| ())
}

/// A statement with copies of its values, to run on another thread.
pub(super) struct OwnedStatement {
    text: Arc<str>,
    values: Vec<Value>,
    columns: Vec<Column>,
}

impl OwnedStatement {
    pub(super) fn new(statement: &Statement<'_>) -> Result<Self, StoreError> {
        let values = statement.binds.iter().map(value_of);
        let values = values.map(|value| Ok(value?.to_value()));
        Ok(Self {
            text: statement.text.clone(),
            values: values.collect::<Result<_, StoreError>>()?,
            columns: statement.columns.to_vec(),
        })
    }

    fn prepare<'c>(&self, connection: &'c Connection) -> Result<PreparedStatement<'c>, StoreError> {
        let values = self.values.iter().map(|value| Ok(value.as_ref()));
        prepare(connection, &self.text, values)
    }

    pub(super) fn execute(&self, connection: &Connection) -> Result<u64, StoreError> {
        finish(&mut self.prepare(connection)?)
    }

    /// Returns copies of the rows.
    pub(super) fn fetch(&self, connection: &Connection) -> Result<Vec<Row>, StoreError> {
        let mut copies = Vec::new();
        let mut visit = |row: &dyn ReadRow| {
            let value = |at| row.read(at).map(ValueRef::to_value);
            let copy = (0..self.columns.len()).map(value);
            copies.push(copy.collect::<Result<Row, StoreError>>()?);
            Ok(())
        };
        show(&mut self.prepare(connection)?, &self.columns, &mut visit)?;
        Ok(copies)
    }
}

/// Passes rows that were copied on another thread to the visitor.
pub(super) fn show_copies(copies: &[Row], visit: Visit<'_>) -> Result<(), StoreError> {
    copies.iter().try_for_each(|row| visit(row))
}
