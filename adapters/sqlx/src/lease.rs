//! A connection of the pool in use, and how it returns to the pool.

use std::pin::pin;
use std::time::Duration;

use core_domain::kernel::StoreError;
use core_storage::sql::postgres::RunError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgConnection;
use sqlx::{Connection, PgPool, Postgres, SqlSafeStr, Transaction};
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
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);
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

/// The connection of a lease.
enum LeasedConnection {
    /// The driver does not know of the transaction.
    Plain(PoolConnection<Postgres>),
    /// The driver counts the transaction, so that a transaction of the host program is a savepoint.
    Counted(Transaction<'static, Postgres>),
}

/// A connection in use. Dropping it returns it to the pool; its statement and its transaction are ended first.
pub(crate) struct Lease {
    pool: PgPool,
    /// `None` if the connection was lost.
    held: Option<LeasedConnection>,
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
            held: Some(LeasedConnection::Plain(
                pool.acquire().await.map_err(failure)?,
            )),
            pool: pool.clone(),
            work: Work::None,
            in_transaction: false,
            process: None,
        })
    }

    pub(crate) fn connection(&mut self) -> Result<&mut PgConnection, StoreError> {
        match &mut self.held {
            Some(LeasedConnection::Plain(connection)) => Ok(&mut *connection),
            Some(LeasedConnection::Counted(transaction)) => Ok(&mut *transaction),
            None => Err(RunError::Closed.into_failure()),
        }
    }

    /// Makes the driver count the open transaction.
    pub(crate) async fn count_transaction(&mut self) -> Result<(), RunError> {
        match self.held.take() {
            Some(LeasedConnection::Plain(connection)) => {
                // The driver would return the connection with an open transaction if this were interrupted.
                let counted = tokio::spawn(Transaction::begin(connection, Some("".into_sql_str())));
                let counted = counted.await.map_err(|_| RunError::Closed)?;
                self.held = Some(LeasedConnection::Counted(counted.map_err(run_error)?));
            }
            other => self.held = other,
        }
        Ok(())
    }

    /// Commits the transaction. The connection returns to the pool when the lease is dropped, at the latest.
    pub(crate) async fn commit(&mut self) -> Result<(), RunError> {
        match self.held.take() {
            Some(LeasedConnection::Counted(transaction)) => {
                transaction.commit().await.map_err(run_error)
            }
            Some(LeasedConnection::Plain(connection)) => {
                let plain = LeasedConnection::Plain(connection);
                let LeasedConnection::Plain(connection) = self.held.insert(plain) else {
                    return Err(RunError::Closed);
                };
                let committed = sqlx::raw_sql("COMMIT").execute(&mut **connection).await;
                committed.map(drop).map_err(run_error)
            }
            None => Err(RunError::Closed),
        }
    }

    /// Replaces a lost connection.
    pub(crate) async fn reconnect(&mut self) -> Result<(), StoreError> {
        self.forget();
        *self = Self::acquire(&self.pool).await?;
        Ok(())
    }

    /// Closes the connection instead of returning it to the pool.
    pub(crate) fn forget(&mut self) {
        if let Some(held) = self.held.take() {
            close(held);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(held) = self.held.take() else {
            return;
        };
        let Ok(runtime) = Handle::try_current() else {
            close(held);
            return;
        };
        if !self.in_transaction && self.work == Work::None {
            // The pool runs a task for it.
            drop(held);
            return;
        }
        let can_cancel = self.work != Work::Commit;
        let process = self.process.filter(|_| can_cancel);
        runtime.spawn(release(self.pool.clone(), held, process));
    }
}

/// Closes the connection, and lets the pool open another one.
fn close(held: LeasedConnection) {
    let has_runtime = Handle::try_current().is_ok();
    match held {
        LeasedConnection::Plain(mut connection) if has_runtime => connection.close_on_drop(),
        // Without a runtime the process ends, and its connections with it.
        LeasedConnection::Plain(connection) => drop(connection.detach()),
        // The pool tests the connection, and closes it.
        LeasedConnection::Counted(transaction) if has_runtime => drop(transaction),
        LeasedConnection::Counted(transaction) => std::mem::forget(transaction),
    }
}

/// Ends the statement and the transaction of a connection, and then returns it to the pool. If they do not end soon, the
/// connection is closed. `process` is the server's process whose statement may be cancelled.
async fn release(pool: PgPool, held: LeasedConnection, process: Option<i32>) {
    match held {
        LeasedConnection::Plain(mut connection) => {
            let rollback = roll_back(&mut connection);
            if !is_rolled_back(&pool, rollback, process).await {
                close(LeasedConnection::Plain(connection));
            }
        }
        LeasedConnection::Counted(transaction) => {
            // After an error the pool tests the connection.
            let rollback = async { transaction.rollback().await.is_ok() };
            is_rolled_back(&pool, rollback, process).await;
        }
    }
}

/// Waits for the rollback, and cancels the statement before it if that takes too long. Returns whether the connection can be
/// reused. It is not reused after a cancel request, because a late request would cancel the next statement.
async fn is_rolled_back(
    pool: &PgPool,
    rollback: impl Future<Output = bool>,
    process: Option<i32>,
) -> bool {
    let mut rollback = pin!(rollback);
    if let Ok(is_rolled_back) = timeout(GRACE, &mut rollback).await {
        return is_rolled_back;
    }
    let settled = timeout(RELEASE_TIMEOUT, async {
        let Some(process) = process else {
            return rollback.await;
        };
        loop {
            // If the request does not arrive, the server's timeout ends the statement.
            let cancelled = async {
                let _ = cancel(pool, process).await;
                sleep(CANCEL_PAUSE).await;
            };
            tokio::select! {
                _ = &mut rollback => return false,
                () = cancelled => {}
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
