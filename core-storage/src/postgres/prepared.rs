//! Prepared transactions: units of work whose changes are durable, and whose end another statement decides.
//!
//! The server allows them only if its setting `max_prepared_transactions` is not 0, which is its default. A prepared
//! transaction keeps its locks until it ends, also after a restart of the server or a promotion of a standby.
//!
//! The functions use a [small pool of their own](Pool::for_prepared_units) for two reasons. Units that wait for the locks of a
//! prepared transaction can occupy every connection of the store, and its end must not wait for them. A pooler can run
//! the two parts of a [query](Connection::query_rows) on different server connections, so the pool uses the direct
//! address.
//! The pool opens its connections when they are needed, and has no metrics.
//!
//! Both functions can be repeated, so they replace a lost connection and run again for [`RETRY_TIMEOUT`].

use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::StoreError;
use tokio::time::{Instant, sleep};

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

/// The time after which no new attempt starts on another connection.
const RETRY_TIMEOUT: Duration = Duration::from_secs(3);
/// The pause between two attempts. The first repetition starts at once.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

const UNITS: &str = "SELECT gid, (extract(epoch FROM now() - prepared) * 1000)::bigint \
    FROM pg_prepared_xacts WHERE database = current_database() AND starts_with(gid, $1) ORDER BY prepared";

const MAXIMUM: &str = "SELECT current_setting('max_prepared_transactions')::bigint";

/// A failed attempt.
enum Failure {
    /// No connection could be opened, or none became free.
    NoConnection(StoreError),
    /// The connection was lost.
    Lost(StoreError),
    /// A repetition would fail too, or the reply already took too long.
    Final(StoreError),
}

impl Failure {
    fn of_acquiring(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(_) => Self::NoConnection(error),
            other => Self::Final(other),
        }
    }

    fn of_statement(error: RunError, into_error: fn(RunError) -> StoreError) -> Self {
        match error.is_lost() && !error.is_timed_out() {
            true => Self::Lost(into_error(error)),
            false => Self::Final(into_error(error)),
        }
    }
}

/// Repeats the attempt after a lost connection, until it succeeds or [`RETRY_TIMEOUT`] has passed. `awaits_server`:
/// whether to repeat it also if the first attempt gets no connection.
///
/// # Errors
/// The error of the first attempt that lost its connection, because it may have had an effect. If there is none, the
/// last error.
async fn repeat<T, F: Future<Output = Result<T, Failure>>>(
    awaits_server: bool,
    mut attempt: impl FnMut() -> F,
) -> Result<T, StoreError> {
    let deadline = Instant::now() + RETRY_TIMEOUT;
    let mut lost = None;
    let mut pause = Duration::ZERO;
    loop {
        let failure = match attempt().await {
            Ok(done) => return Ok(done),
            Err(failure) => failure,
        };
        let unopened = match failure {
            Failure::Final(error) => return Err(error),
            Failure::Lost(error) => {
                lost.get_or_insert(error);
                None
            }
            Failure::NoConnection(error) => Some(error),
        };
        let is_over = Instant::now() + pause >= deadline || (lost.is_none() && !awaits_server);
        if is_over && let Some(error) = lost.take().or(unopened) {
            return Err(error);
        }
        sleep(pause).await;
        pause = RETRY_PAUSE;
    }
}

/// Returns the prepared transactions of the database whose names start with this prefix.
///
/// # Errors
/// [`StoreError::Unavailable`] at once if no connection can be opened: the caller may hold a connection to another
/// database in the meantime.
pub(super) async fn units(pool: &Arc<Pool>, prefix: &str) -> Result<Vec<PreparedUnit>, StoreError> {
    let rows = repeat(false, || find_units(pool, prefix)).await?;
    let rows = rows.ok_or_else(|| {
        StoreError::backend(
            "max_prepared_transactions of the server is 0; set it to the number of its connections and restart it",
        )
    })?;
    rows.iter().map(unit).collect()
}

/// Returns the prepared transactions on one connection; `None` if the server allows none.
async fn find_units(
    pool: &Arc<Pool>,
    prefix: &str,
) -> Result<Option<Vec<tokio_postgres::Row>>, Failure> {
    let mut lease = pool.acquire().await.map_err(Failure::of_acquiring)?;
    lease.work = Work::Statement;
    let connection = lease.connection().map_err(Failure::Final)?;
    let read = read_units(connection, prefix).await;
    lease.work = Work::None;
    read.map_err(|error| {
        lease.handle_error(&error);
        Failure::of_statement(error, RunError::into_failure)
    })
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
///
/// # Errors
/// [`StoreError::CommitUnknown`] if the transaction may or may not have ended, or if a failover can bring it back.
pub(super) async fn end(pool: &Arc<Pool>, name: &str, end: UnitEnd) -> Result<(), StoreError> {
    let verb = match end {
        UnitEnd::Commit => "COMMIT",
        UnitEnd::Rollback => "ROLLBACK",
    };
    let statement = format!("{verb} PREPARED {}", quote_literal(name));
    repeat(true, || end_once(pool, &statement)).await
}

/// Ends a prepared transaction on one connection.
async fn end_once(pool: &Arc<Pool>, statement: &str) -> Result<(), Failure> {
    let mut lease = pool.acquire().await.map_err(Failure::of_acquiring)?;
    let mut attempts = BUSY_ATTEMPTS;
    loop {
        attempts -= 1;
        lease.work = Work::Commit;
        let connection = lease.connection().map_err(Failure::Final)?;
        let outcome = connection.batch_durable(statement).await;
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
                return Err(Failure::of_statement(error, RunError::into_commit_failure));
            }
        }
    }
}

/// Returns the text as a literal of SQL. It contains no backslash.
pub(super) fn quote_literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
