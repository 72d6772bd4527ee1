//! Conversion of values to and from the wire format of the server.

use core_domain::kernel::StoreError;
use tokio_postgres::Row;
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type as PgType, to_sql_checked};
use uuid::Uuid;

use crate::sql::Bind;
use crate::sql::postgres::UuidTexts;
use crate::table::{Column, Type};
use crate::value::{ReadRow, ValueRef};

type EncodeResult = Result<IsNull, Box<dyn std::error::Error + Sync + Send>>;

/// Returns the Postgres type of a placeholder.
pub(super) fn type_of(bind: &Bind<'_>) -> PgType {
    match bind {
        Bind::One(Type::Bool, _) => PgType::BOOL,
        Bind::One(Type::Int, _) => PgType::INT8,
        Bind::One(Type::Uuid, _) | Bind::Generated(Type::Uuid, _) => PgType::UUID,
        Bind::One(Type::Text | Type::Json, _) | Bind::Generated(..) => PgType::TEXT,
        Bind::Array(Type::Bool, _) => PgType::BOOL_ARRAY,
        Bind::Array(Type::Int, _) => PgType::INT8_ARRAY,
        Bind::Array(Type::Text | Type::Json, _) => PgType::TEXT_ARRAY,
        Bind::Array(Type::Uuid, _) => PgType::UUID_ARRAY,
    }
}

/// A parameter for the driver. The driver logs its `Debug` output, which contains no value.
#[derive(Debug)]
pub(super) struct Parameter<'b, 'q>(pub(super) &'b Bind<'q>);

impl ToSql for Parameter<'_, '_> {
    fn to_sql(&self, kind: &PgType, out: &mut BytesMut) -> EncodeResult {
        match self.0 {
            Bind::Generated(_, text) => encode(ValueRef::Text(text), kind, out),
            Bind::One(_, value) => encode(*value, kind, out),
            Bind::Array(Type::Bool, values) => array(values, ValueRef::as_bool).to_sql(kind, out),
            Bind::Array(Type::Int, values) => array(values, ValueRef::as_int).to_sql(kind, out),
            Bind::Array(Type::Text | Type::Json, values) => {
                array(values, ValueRef::as_text).to_sql(kind, out)
            }
            Bind::Array(Type::Uuid, values) => {
                let uuids = values
                    .iter()
                    .map(|value| value.as_text().map(Uuid::try_parse));
                let uuids: Vec<Option<Uuid>> =
                    uuids.map(Option::transpose).collect::<Result<_, _>>()?;
                uuids.to_sql(kind, out)
            }
        }
    }

    // Statements are prepared with the types of `type_of`, so every type is accepted.
    fn accepts(_: &PgType) -> bool {
        true
    }

    to_sql_checked!();
}

fn encode(value: ValueRef<'_>, kind: &PgType, out: &mut BytesMut) -> EncodeResult {
    match value {
        ValueRef::Null => Ok(IsNull::Yes),
        ValueRef::Bool(yes) => yes.to_sql(kind, out),
        ValueRef::Int(number) => number.to_sql(kind, out),
        ValueRef::Text(text) if *kind == PgType::UUID => Uuid::try_parse(text)?.to_sql(kind, out),
        ValueRef::Text(text) => text.to_sql(kind, out),
    }
}

fn array<'v, T>(values: &[ValueRef<'v>], of: fn(ValueRef<'v>) -> Option<T>) -> Vec<Option<T>> {
    values.iter().copied().map(of).collect()
}

/// Returns whether the database stores the column as UUIDs.
fn is_uuid(row: &Row, at: usize) -> bool {
    let column = row.columns().get(at);
    column.is_some_and(|column| *column.type_() == PgType::UUID)
}

/// A row that the server has sent.
pub(super) struct ResultRow<'r> {
    row: &'r Row,
    columns: &'r [Column],
    uuids: &'r UuidTexts,
}

impl<'r> ResultRow<'r> {
    /// Creates the row. The texts of its UUIDs replace those of the row before it.
    pub(super) fn new(
        row: &'r Row,
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

impl ReadRow for ResultRow<'_> {
    fn read(&self, at: usize) -> Result<ValueRef<'_>, StoreError> {
        let Some(column) = self.columns.get(at) else {
            return Ok(ValueRef::Null);
        };
        if let Some(uuid) = self.uuids.get(at) {
            return Ok(uuid);
        }
        let value = match column.kind {
            Type::Bool => {
                let yes = self.row.try_get::<_, Option<bool>>(at);
                yes.map(|v| v.map(ValueRef::Bool))
            }
            Type::Int => {
                let number = self.row.try_get::<_, Option<i64>>(at);
                number.map(|v| v.map(ValueRef::Int))
            }
            Type::Text | Type::Uuid | Type::Json => {
                let text = self.row.try_get::<_, Option<&str>>(at);
                text.map(|v| v.map(ValueRef::Text))
            }
        };
        Ok(value
            .map_err(StoreError::backend)?
            .unwrap_or(ValueRef::Null))
    }
}
