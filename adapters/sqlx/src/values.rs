//! Conversion of values to and from the wire format of the server.

use core_domain::kernel::StoreError;
use core_storage::sql::postgres::UuidTexts;
use core_storage::sql::{Bind, Statement};
use core_storage::{Column, ReadRow, Type, ValueRef};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::types::Uuid;
use sqlx::{Arguments, Column as _, Row, Type as _};

/// Encodes the parameters of a statement.
pub(crate) fn arguments(statement: &Statement<'_>) -> Result<PgArguments, StoreError> {
    let mut arguments = PgArguments::default();
    for bind in &statement.binds {
        let added = match bind {
            Bind::One(Type::Bool, value) => arguments.add(value.as_bool()),
            Bind::One(Type::Int, value) => arguments.add(value.as_int()),
            Bind::One(Type::Text | Type::Json, value) => arguments.add(value.as_text()),
            Bind::One(Type::Uuid, value) => arguments.add(uuid(*value)?),
            Bind::Generated(Type::Uuid, text) => arguments.add(uuid(ValueRef::Text(text))?),
            Bind::Generated(_, text) => arguments.add(text.as_str()),
            Bind::Array(Type::Bool, values) => arguments.add(array(values, ValueRef::as_bool)),
            Bind::Array(Type::Int, values) => arguments.add(array(values, ValueRef::as_int)),
            Bind::Array(Type::Text | Type::Json, values) => {
                arguments.add(array(values, ValueRef::as_text))
            }
            Bind::Array(Type::Uuid, values) => {
                let uuids = values.iter().copied().map(uuid);
                arguments.add(uuids.collect::<Result<Vec<_>, _>>()?)
            }
        };
        added.map_err(|_| not_encoded())?;
    }
    Ok(arguments)
}

fn not_encoded() -> StoreError {
    StoreError::backend("a value could not be encoded")
}

fn uuid(value: ValueRef<'_>) -> Result<Option<Uuid>, StoreError> {
    let uuid = value.as_text().map(Uuid::try_parse).transpose();
    uuid.map_err(|_| not_encoded())
}

fn array<'v, T>(values: &[ValueRef<'v>], of: fn(ValueRef<'v>) -> Option<T>) -> Vec<Option<T>> {
    values.iter().copied().map(of).collect()
}

/// Returns whether the database stores the column as UUIDs.
fn is_uuid(row: &PgRow, at: usize) -> bool {
    let column = row.columns().get(at);
    column.is_some_and(|column| *column.type_info() == Uuid::type_info())
}

/// A row that the server has sent.
pub(crate) struct Answer<'r> {
    row: &'r PgRow,
    columns: &'r [Column],
    uuids: &'r UuidTexts,
}

impl<'r> Answer<'r> {
    /// Creates the row. The texts of its UUIDs replace those of the row before it.
    pub(crate) fn new(
        row: &'r PgRow,
        columns: &'r [Column],
        uuids: &'r mut UuidTexts,
    ) -> Result<Self, StoreError> {
        let read = |at| row.try_get(at).map_err(StoreError::backend);
        uuids.read_row(columns, |at| is_uuid(row, at), read)?;
        Ok(Self {
            row,
            columns,
            uuids,
        })
    }
}

impl ReadRow for Answer<'_> {
    fn read(&self, at: usize) -> Result<ValueRef<'_>, StoreError> {
        let Some(column) = self.columns.get(at) else {
            return Ok(ValueRef::Null);
        };
        if let Some(uuid) = self.uuids.get(at) {
            return Ok(uuid);
        }
        let value = match column.kind {
            Type::Bool => {
                let yes = self.row.try_get::<Option<bool>, _>(at);
                yes.map(|v| v.map(ValueRef::Bool))
            }
            Type::Int => {
                let number = self.row.try_get::<Option<i64>, _>(at);
                number.map(|v| v.map(ValueRef::Int))
            }
            Type::Text | Type::Uuid | Type::Json => {
                let text = self.row.try_get::<Option<&str>, _>(at);
                text.map(|v| v.map(ValueRef::Text))
            }
        };
        // The text of the error may contain the value.
        let value = value.map_err(|_| {
            StoreError::backend(format!("{} holds a value of another type", column.name))
        });
        Ok(value?.unwrap_or(ValueRef::Null))
    }
}
