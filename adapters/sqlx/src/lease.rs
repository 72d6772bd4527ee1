//! A connection of the pool in use, and how it returns to the pool.

use std::pin::pin;
use std::time::Duration;

use core_domain::kernel::StoreError;
use core_storage::sql::postgres::RunError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgConnection;
use sqlx::{Connection, PgPool, Postgres};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use crate::error::{failure, run_error};

/// How long an abandoned statement may run before it is cancelled. Most statements end sooner than a cancel request
/// arrives.
const GRACE: Duration = Duration::from_millis(20);
/// How long a cancelled statement may run before it is cancelled again. A server ignores a cancel request if the
/// statement has not started yet.
const CANCEL_PAUSE: Duration = Duration::from_millis(200);
/// Maximum time to end the abandoned work of a connection.
const MAX_SETTLE: Duration = Duration::from_secs(5);
/// Maximum number of errors of abandoned statements that are read before a rollback succeeds.
const MAX_PENDING_ERRORS: usize = 4;

/// The work in progress on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// No statement is in progress.
    None,
    /// A statement is in progress.
    Statement,
    /// A commit is in progress.
    Commit,
}

/// A connection in use. Dropping it returns it to the pool; its statement and its transaction are ended first.
pub(crate) struct Lease {
    pool: PgPool,
    /// `None` if the connection was lost.
    connection: Option<PoolConnection<Postgres>>,
    /// The work in progress.
    pub(crate) work: Work,
    /// Whether a transaction may be open.
    pub(crate) in_transaction: bool,
    /// The id of the server's process, once it is known.
    pub(crate) process: Option<i32>,
}

impl Lease {
    /// Acquires a connection.
    pub(crate) async fn acquire(pool: &PgPool) -> Result<Self, StoreError> {
        Ok(Self {
            connection: Some(pool.acquire().await.map_err(failure)?),
            pool: pool.clone(),
            work: Work::None,
            in_transaction: false,
            process: None,
        })
    }

    pub(crate) fn connection(&mut self) -> Result<&mut PgConnection, StoreError> {
        let connection = self.connection.as_deref_mut();
        connection.ok_or_else(|| RunError::Closed.into_failure())
    }

    /// Replaces a lost connection.
    pub(crate) async fn reconnect(&mut self) -> Result<(), StoreError> {
        self.forget();
        *self = Self::acquire(&self.pool).await?;
        Ok(())
    }

    /// Closes the connection instead of returning it to the pool.
    pub(crate) fn forget(&mut self) {
        if let Some(connection) = self.connection.take() {
            close(connection);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        let Ok(runtime) = Handle::try_current() else {
            close(connection);
            return;
        };
        if !self.in_transaction && self.work == Work::None {
            // The pool runs a task for it.
            drop(connection);
            return;
        }
        let can_cancel = self.work != Work::Commit;
        let process = self.process.filter(|_| can_cancel);
        runtime.spawn(settle(self.pool.clone(), connection, process));
    }
}

/// Closes the connection, and lets the pool open another one.
fn close(mut connection: PoolConnection<Postgres>) {
    if Handle::try_current().is_ok() {
        connection.close_on_drop();
    } else {
        // Without a runtime the process ends, and its connections with it.
        drop(connection.detach());
    }
}

/// Ends the statement and the transaction of a connection, and then returns it to the pool. If they do not end soon, the
/// connection is closed. `process` is the server's process whose statement may be cancelled.
async fn settle(pool: PgPool, mut connection: PoolConnection<Postgres>, process: Option<i32>) {
    if is_rolled_back(&pool, &mut connection, process).await {
        drop(connection);
    } else {
        close(connection);
    }
}

/// Returns whether the connection can be reused. It is not reused after a cancel request, because a late request would
/// cancel the next statement.
async fn is_rolled_back(
    pool: &PgPool,
    connection: &mut PgConnection,
    process: Option<i32>,
) -> bool {
    let mut rollback = pin!(roll_back(connection));
    if let Ok(is_rolled_back) = timeout(GRACE, &mut rollback).await {
        return is_rolled_back;
    }
    let settled = timeout(MAX_SETTLE, async {
        let Some(process) = process else {
            return rollback.await;
        };
        loop {
            // If the request does not arrive, the server's timeout ends the statement.
            let cancelled = async {
                let _ = cancel(pool, process).await;
                sleep(CANCEL_PAUSE).await;
            };
            let mut cancelled = pin!(cancelled);
            tokio::select! {
                _ = &mut rollback => return false,
                () = &mut cancelled => {}
            }
        }
    });
    settled.await.unwrap_or(false)
}

/// Rolls the transaction back. The driver first reads the replies to abandoned statements, which may be errors.
async fn roll_back(connection: &mut PgConnection) -> bool {
    for _ in 0..MAX_PENDING_ERRORS {
        let rolled_back = sqlx::raw_sql("ROLLBACK").execute(&mut *connection).await;
        match rolled_back.map_err(run_error) {
            Ok(_) => return true,
            Err(error) if error.is_lost() => return false,
            Err(_) => {}
        }
    }
    false
}

/// Asks the server to cancel the statement of one of its processes.
async fn cancel(pool: &PgPool, process: i32) -> Result<(), sqlx::Error> {
    let mut other = PgConnection::connect_with(&pool.connect_options()).await?;
    let cancel = sqlx::query("SELECT pg_cancel_backend($1)").bind(process);
    cancel.execute(&mut other).await?;
    other.close().await
}
