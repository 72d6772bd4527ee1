//! The connections that read, and their units of work.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use core_domain::kernel::StoreError;
use core_domain::port::PoolState;
use rusqlite::Connection;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::commits::{Commits, RowSet};
use super::config::SqliteConfig;
use super::connection;
use super::error::statement_error;
use super::run::{OwnedStatement, control, execute, fetch, show_copies, take_snapshot};
use crate::sql::{Cost, Executor, Statement};
use crate::table::Table;
use crate::value::Visit;
use crate::waiting::Waiting;

/// The idle connections, and one permit for each connection.
#[derive(Debug)]
pub(super) struct Readers {
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
    /// The number of connections.
    count: u32,
    /// The number of units that wait for a permit.
    waiting: AtomicUsize,
    acquire_timeout: Duration,
    read_timeout: Duration,
    /// The commits of this process; `None` if another process writes.
    commits: Option<Arc<Commits>>,
}

impl Readers {
    pub(super) fn open(
        config: &SqliteConfig,
        commits: Option<Arc<Commits>>,
    ) -> Result<Arc<Self>, StoreError> {
        let count = config.readers.max(1);
        let idle: Result<Vec<_>, _> = (0..count).map(|_| connection::reading(config)).collect();
        let permits = usize::try_from(count).unwrap_or(Semaphore::MAX_PERMITS);
        Ok(Arc::new(Self {
            idle: Mutex::new(idle?),
            permits: Arc::new(Semaphore::new(permits)),
            count,
            waiting: AtomicUsize::new(0),
            acquire_timeout: config.acquire_timeout,
            read_timeout: config.read_timeout,
            commits,
        }))
    }

    /// Returns the current use of the connections.
    pub(super) fn state(&self) -> PoolState {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let idle = number(self.permits.available_permits());
        let limit = u64::from(self.count);
        PoolState {
            name: "sqlite-readers",
            limit,
            in_use: Some(limit.saturating_sub(idle)),
            idle: Some(idle),
            waiting: Some(number(self.waiting.load(Ordering::Relaxed))),
        }
    }

    /// Opens a read unit. In a transaction it sees one snapshot throughout.
    pub(super) async fn begin(self: &Arc<Self>, transaction: bool) -> Result<Reader, StoreError> {
        let waiting = Waiting::new(&self.waiting);
        let permit = timeout(self.acquire_timeout, self.permits.clone().acquire_owned()).await;
        drop(waiting);
        let permit = permit.map_err(|_| acquire_timed_out("to read"))?;
        let permit = permit.map_err(StoreError::unavailable)?;
        let connection = self.lock().pop();
        let connection = connection.ok_or_else(|| StoreError::unavailable("no connection"))?;
        let lease = Lease {
            connection: Some(connection),
            transaction,
            readers: self.clone(),
            _permit: permit,
        };
        let snapshot = match transaction {
            true => snapshot(&lease, self.commits.as_deref())?,
            false => None,
        };
        Ok(Reader {
            lease: Some(lease),
            snapshot,
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the snapshot of a unit. Returns the number of the commit that had finished before, if commits are counted.
fn snapshot(lease: &Lease, commits: Option<&Commits>) -> Result<Option<u64>, StoreError> {
    let finished = commits.map(Commits::last_commit);
    control(lease.connection()?, "BEGIN DEFERRED").map_err(statement_error)?;
    // The snapshot of a deferred transaction starts with its first read.
    take_snapshot(lease.connection()?).map_err(statement_error)?;
    Ok(finished)
}

/// A connection in use. Dropping it returns the connection, on any thread.
struct Lease {
    connection: Option<Connection>,
    transaction: bool,
    readers: Arc<Readers>,
    // Released after the connection was returned.
    _permit: OwnedSemaphorePermit,
}

impl Lease {
    fn connection(&self) -> Result<&Connection, StoreError> {
        self.connection.as_ref().ok_or_else(connection_lost_error)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        if self.transaction {
            // The transaction has changed nothing, so a failure of the rollback has no effect.
            let _ = control(&connection, "ROLLBACK");
        }
        self.readers.lock().push(connection);
    }
}

/// Returns the error of a unit that did not get its turn in time.
pub(super) fn acquire_timed_out(purpose: &str) -> StoreError {
    StoreError::unavailable(format!("waiting for a turn {purpose} timed out"))
}

/// The number of SQLite virtual machine instructions between two checks for abandoned reads. They take less than 1 ms.
const STEPS_BETWEEN_CHECKS: std::ffi::c_int = 1_000;

/// Ends a read when it is dropped, even if the read has not started yet.
struct CancelOnDrop(Arc<AtomicBool>);

impl CancelOnDrop {
    fn end(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.end();
    }
}

/// Runs a read on a connection. Interrupts it when `is_over` returns `true`.
fn run_until<T>(
    connection: &Connection,
    is_over: Arc<AtomicBool>,
    read: impl FnOnce(&Connection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let looks = move || is_over.load(Ordering::Relaxed);
    let set = connection.progress_handler(STEPS_BETWEEN_CHECKS, Some(looks));
    set.map_err(statement_error)?;
    let _clear = ClearOnDrop(connection);
    read(connection)
}

/// Removes the progress handler of a connection when it is dropped, even after a panic. Otherwise the handler could end
/// the reads of the next unit.
struct ClearOnDrop<'a>(&'a Connection);

impl Drop for ClearOnDrop<'_> {
    fn drop(&mut self) {
        // This fails only for a connection that this module does not own, which has no such handler.
        let _ = self.0.progress_handler(0, None::<fn() -> bool>);
    }
}

/// Returns the error of a unit whose connection was not returned by a blocking thread.
pub(super) fn connection_lost_error() -> StoreError {
    StoreError::unavailable("a statement of this unit of work panicked or was abandoned")
}

/// A unit of work that reads.
pub(super) struct Reader {
    /// `None` while a statement runs on a blocking thread.
    lease: Option<Lease>,
    /// The number of the commit that had finished before the snapshot was taken; `None` without a snapshot.
    snapshot: Option<u64>,
}

impl Executor for Reader {
    async fn execute(&mut self, statement: &Statement<'_>) -> Result<u64, StoreError> {
        let lease = self.lease.as_ref().ok_or_else(connection_lost_error)?;
        execute(lease.connection()?, statement)
    }

    async fn fetch(
        &mut self,
        statement: &Statement<'_>,
        visit: Visit<'_>,
    ) -> Result<(), StoreError> {
        if statement.cost == Cost::Bounded {
            let lease = self.lease.as_ref().ok_or_else(connection_lost_error)?;
            return fetch(lease.connection()?, statement, visit);
        }
        let lease = self.lease.take().ok_or_else(connection_lost_error)?;
        let detached = OwnedStatement::new(statement)?;
        let read_timeout = lease.readers.read_timeout;
        let end = CancelOnDrop(Arc::default());
        let is_cancelled = end.0.clone();
        let run = move || {
            let connection = lease.connection();
            let rows = connection.and_then(|c| run_until(c, is_cancelled, |c| detached.fetch(c)));
            (lease, rows)
        };
        let mut running = tokio::task::spawn_blocking(run);
        let done = match timeout(read_timeout, &mut running).await {
            Ok(done) => done,
            Err(_) => {
                end.end();
                running.await
            }
        };
        let (lease, rows) = done.map_err(StoreError::unavailable)?;
        self.lease = Some(lease);
        show_copies(&rows?, visit)
    }

    fn commit_number(&self, table: &'static Table, platform: Option<&str>) -> Option<u64> {
        let commits = self.lease.as_ref()?.readers.commits.as_ref()?;
        commits.last_change(&RowSet::new(table.name, platform), self.snapshot?)
    }

    async fn commit(self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn rollback(self) {}
}
