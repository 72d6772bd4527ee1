//! Conversion of values to and from the wire format of the server.

use core_domain::kernel::StoreError;
use core_storage::sql::{Bind, Statement};
use core_storage::{Column, ReadRow, Type, ValueRef};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{Arguments, Row};

/// Encodes the parameters of a statement.
pub(crate) fn arguments(statement: &Statement<'_>) -> Result<PgArguments, StoreError> {
    let mut arguments = PgArguments::default();
    for bind in &statement.binds {
        let added = match bind {
            Bind::One(Type::Bool, value) => arguments.add(value.as_bool()),
            Bind::One(Type::Int, value) => arguments.add(value.as_int()),
            Bind::One(Type::Text | Type::Json, value) => arguments.add(value.as_text()),
            Bind::Generated(text) => arguments.add(text.as_str()),
            Bind::Array(Type::Bool, values) => arguments.add(array(values, ValueRef::as_bool)),
            Bind::Array(Type::Int, values) => arguments.add(array(values, ValueRef::as_int)),
            Bind::Array(Type::Text | Type::Json, values) => {
                arguments.add(array(values, ValueRef::as_text))
            }
        };
        added.map_err(|_| StoreError::backend("a value could not be encoded"))?;
    }
    Ok(arguments)
}

fn array<'v, T>(values: &[ValueRef<'v>], of: fn(ValueRef<'v>) -> Option<T>) -> Vec<Option<T>> {
    values.iter().copied().map(of).collect()
}

/// A row that the server has sent.
pub(crate) struct Answer<'r> {
    pub(crate) row: &'r PgRow,
    pub(crate) columns: &'r [Column],
}

impl ReadRow for Answer<'_> {
    fn read(&self, at: usize) -> Result<ValueRef<'_>, StoreError> {
        let Some(column) = self.columns.get(at) else {
            return Ok(ValueRef::Null);
        };
        let value = match column.kind {
            Type::Bool => {
                let yes = self.row.try_get::<Option<bool>, _>(at);
                yes.map(|v| v.map(ValueRef::Bool))
            }
            Type::Int => {
                let number = self.row.try_get::<Option<i64>, _>(at);
                number.map(|v| v.map(ValueRef::Int))
            }
            Type::Text | Type::Json => {
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
