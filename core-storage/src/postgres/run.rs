//! Runs a statement on a connection.

use core_domain::kernel::StoreError;
use futures_util::TryStreamExt;
use sqlx::postgres::{PgArguments, PgConnection, PgRow};
use sqlx::query::Query;
use sqlx::{Arguments, AssertSqlSafe, Postgres, Row as _};

use super::error::{failure, is_lost};
use crate::sql::{Bind, Statement};
use crate::table::{Column, Type};
use crate::value::{ReadRow, ValueRef, Visit};

/// Why a statement failed.
pub(super) enum RunError {
    /// The connection is lost.
    Lost(StoreError),
    /// The connection can be used again.
    Failed(StoreError),
}

impl RunError {
    fn of(error: sqlx::Error) -> Self {
        if is_lost(&error) {
            Self::Lost(failure(error))
        } else {
            Self::Failed(failure(error))
        }
    }
}

/// The only use of text as a statement: the renderer made it of quoted names, placeholders, limits and literals
/// of index predicates alone.
fn query(statement: &Statement<'_>) -> Result<Query<'static, Postgres, PgArguments>, RunError> {
    let mut arguments = PgArguments::default();
    arguments.reserve(statement.binds.len(), 32 * statement.binds.len());
    for bind in &statement.binds {
        let added = add(&mut arguments, bind);
        added.map_err(|error| RunError::Failed(StoreError::backend(error)))?;
    }
    let text = AssertSqlSafe(statement.text.clone());
    Ok(sqlx::query_with(text, arguments))
}

fn add(arguments: &mut PgArguments, bind: &Bind<'_>) -> Result<(), sqlx::error::BoxDynError> {
    match bind {
        Bind::Made(text) => arguments.add(text.as_str()),
        Bind::One(_, ValueRef::Bool(yes)) => arguments.add(*yes),
        Bind::One(_, ValueRef::Int(number)) => arguments.add(*number),
        Bind::One(_, ValueRef::Text(text)) => arguments.add(*text),
        // Postgres needs the type of a NULL.
        Bind::One(Type::Bool, ValueRef::Null) => arguments.add(None::<bool>),
        Bind::One(Type::Int, ValueRef::Null) => arguments.add(None::<i64>),
        Bind::One(Type::Text | Type::Json, ValueRef::Null) => arguments.add(None::<&str>),
        Bind::Array(Type::Bool, values) => arguments.add(array(values, ValueRef::as_bool)),
        Bind::Array(Type::Int, values) => arguments.add(array(values, ValueRef::as_int)),
        Bind::Array(Type::Text | Type::Json, values) => {
            arguments.add(array(values, ValueRef::as_text))
        }
    }
}

fn array<'v, T>(values: &[ValueRef<'v>], of: fn(ValueRef<'v>) -> Option<T>) -> Vec<Option<T>> {
    values.iter().copied().map(of).collect()
}

/// A row as the server has sent it.
struct Answer<'r> {
    row: &'r PgRow,
    columns: &'r [Column],
}

impl ReadRow for Answer<'_> {
    fn read(&self, at: usize) -> Result<ValueRef<'_>, StoreError> {
        let Some(column) = self.columns.get(at) else {
            return Ok(ValueRef::Null);
        };
        let value = match column.kind {
            Type::Bool => self
                .row
                .try_get::<Option<bool>, _>(at)
                .map(|v| v.map(ValueRef::Bool)),
            Type::Int => self
                .row
                .try_get::<Option<i64>, _>(at)
                .map(|v| v.map(ValueRef::Int)),
            Type::Text | Type::Json => {
                let text = self.row.try_get::<Option<&str>, _>(at);
                text.map(|v| v.map(ValueRef::Text))
            }
        };
        Ok(value.map_err(failure)?.unwrap_or(ValueRef::Null))
    }
}

/// Runs a change; tells how many rows it affected.
pub(super) async fn execute(
    connection: &mut PgConnection,
    statement: &Statement<'_>,
) -> Result<u64, RunError> {
    let done = query(statement)?.execute(connection).await;
    Ok(done.map_err(RunError::of)?.rows_affected())
}

/// Runs a query and shows its rows; `shown` tells whether any was.
pub(super) async fn fetch(
    connection: &mut PgConnection,
    statement: &Statement<'_>,
    visit: Visit<'_>,
    shown: &mut bool,
) -> Result<(), RunError> {
    let mut rows = query(statement)?.fetch(connection);
    while let Some(row) = rows.try_next().await.map_err(RunError::of)? {
        *shown = true;
        let (row, columns) = (&row, statement.columns);
        visit(&Answer { row, columns }).map_err(RunError::Failed)?;
    }
    Ok(())
}

/// Runs a statement that is part of a unit's course: BEGIN, COMMIT, .. Answers the number in its last row, if any.
pub(super) async fn control(
    connection: &mut PgConnection,
    text: &'static str,
) -> Result<Option<i64>, sqlx::Error> {
    let rows = sqlx::raw_sql(text).fetch_all(connection).await?;
    rows.last().map(|row| row.try_get(0)).transpose()
}
