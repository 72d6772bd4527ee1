//! Prepared transactions: units of work whose changes are durable, and whose end another statement decides.
//!
//! The server allows them only if its setting `max_prepared_transactions` is not 0, which is its default. A prepared
//! transaction keeps its locks until it ends, also after a restart of the server or a promotion of a standby.

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::StoreError;
use tokio::time::sleep;

use super::connection::Connection;
use super::pool::{Pool, Work};
use crate::row_store::{PreparedUnit, UnitEnd};
use crate::sql::postgres::RunError;

/// The error code for a transaction that is not prepared, or not any more.
const UNDEFINED_OBJECT: &str = "42704";

/// The error code for a prepared transaction that another connection is ending.
const OBJECT_NOT_IN_PREREQUISITE_STATE: &str = "55000";

/// The number of attempts to end a prepared transaction that others are ending, and the pause between them.
const BUSY_ATTEMPTS: u32 = 200;
const BUSY_PAUSE: Duration = Duration::from_millis(10);

const UNITS: &str = "SELECT gid, (extract(epoch FROM now() - prepared) * 1000)::bigint \
    FROM pg_prepared_xacts WHERE database = current_database() AND starts_with(gid, $1) ORDER BY prepared";

const MAXIMUM: &str = "SELECT current_setting('max_prepared_transactions')::bigint";

/// Returns the prepared transactions of the database whose names start with this prefix.
pub(super) async fn units(pool: &Arc<Pool>, prefix: &str) -> Result<Vec<PreparedUnit>, StoreError> {
    let mut lease = pool.acquire().await?;
    lease.work = Work::Statement;
    let read = read_units(lease.connection()?, prefix).await;
    lease.work = Work::None;
    let rows = read.map_err(|error| {
        lease.handle_error(&error);
        error.into_failure()
    })?;
    let rows = rows.ok_or_else(|| {
        StoreError::backend(
            "max_prepared_transactions of the server is 0; set it to the number of its connections and restart it",
        )
    })?;
    rows.iter().map(unit).collect()
}

/// Returns the prepared transactions; `None` if the server allows none.
async fn read_units(
    connection: &mut Connection,
    prefix: &str,
) -> Result<Option<Vec<tokio_postgres::Row>>, RunError> {
    match connection.number(MAXIMUM).await? {
        Some(1..) => Ok(Some(connection.query_rows(UNITS, &[prefix]).await?)),
        _ => Ok(None),
    }
}

fn unit(row: &tokio_postgres::Row) -> Result<PreparedUnit, StoreError> {
    let millis: i64 = row.try_get(1).map_err(StoreError::backend)?;
    Ok(PreparedUnit {
        name: row.try_get(0).map_err(StoreError::backend)?,
        age: Duration::from_millis(millis.try_into().unwrap_or_default()),
    })
}

/// Ends the prepared transaction with this name, if there is one.
pub(super) async fn end(pool: &Arc<Pool>, name: &str, end: UnitEnd) -> Result<(), StoreError> {
    let verb = match end {
        UnitEnd::Commit => "COMMIT",
        UnitEnd::Rollback => "ROLLBACK",
    };
    let statement = format!("{verb} PREPARED {}", quote_literal(name));
    let mut lease = pool.acquire().await?;
    let mut attempts = BUSY_ATTEMPTS;
    loop {
        attempts -= 1;
        lease.work = Work::Commit;
        let outcome = lease.connection()?.batch(&statement).await;
        lease.work = Work::None;
        let Err(error) = outcome else {
            return Ok(());
        };
        let code = match &error {
            RunError::Driver(error) => error.sqlstate(),
            _ => None,
        };
        match code {
            Some(UNDEFINED_OBJECT) => return Ok(()),
            // Another process is ending it.
            Some(OBJECT_NOT_IN_PREREQUISITE_STATE) if attempts > 0 => sleep(BUSY_PAUSE).await,
            _ => {
                lease.handle_error(&error);
                return Err(error.into_commit_failure());
            }
        }
    }
}

/// Returns the text as a literal of SQL. It contains no backslash.
pub(super) fn quote_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
