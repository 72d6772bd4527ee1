//! The pool of connections. Acquiring and releasing a connection takes no round trip.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use core_domain::kernel::StoreError;
use core_domain::port::PoolState;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use super::PostgresConfig;
use super::connection::Connection;
use super::openings::Openings;
use super::options::Options;
use super::position::Position;

use crate::sql::postgres::RunError;
use crate::waiting::Waiting;

/// The maximum age of a connection. Its server process accumulates memory for tables and plans.
const MAX_AGE: Duration = Duration::from_secs(30 * 60);

/// The name of a pool of connections to the primary.
const PRIMARY: &str = "postgres";
/// The name of a pool of connections to a standby.
const REPLICA: &str = "postgres-replica";
/// The name of a pool for prepared transactions, which has no metrics.
const PREPARED: &str = "postgres-prepared";
/// The maximum number of connections of that pool.
const PREPARED_CONNECTIONS: usize = 4;

/// A connection and the time at which it was opened.
struct PooledConnection {
    connection: Connection,
    at: Instant,
}

struct Idle {
    opened: PooledConnection,
    since: Instant,
}

impl Idle {
    fn is_reusable(&self, max_idle: Duration) -> bool {
        self.since.elapsed() < max_idle && self.opened.at.elapsed() < MAX_AGE
    }
}

/// The work in progress on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// No work, or a rollback whose reply the next user reads.
    None,
    /// A statement is in progress.
    Statement,
    /// A commit is in progress.
    Commit,
}

/// The pool of a store's connections. The connection that was released last is reused first.
pub(super) struct Pool {
    /// The name in metrics.
    name: &'static str,
    pub(super) options: Options,
    /// The statements that open units.
    pub(super) openings: Openings,
    acquire_timeout: Duration,
    max_idle: Duration,
    permits: Arc<Semaphore>,
    /// Maximum number of connections: the number of permits.
    limit: usize,
    /// The number of units that wait for a permit.
    waiting: AtomicUsize,
    /// The idle connections, in the order in which they were released.
    idle: Mutex<Vec<Idle>>,
    reaper: JoinHandle<()>,
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.reaper.abort();
    }
}

/// Returns the configured maximum number of connections.
fn limit(config: &PostgresConfig) -> usize {
    let connections = usize::try_from(config.connections.max(2));
    connections.unwrap_or(Semaphore::MAX_PERMITS)
}

/// Closes connections that have been idle for too long, until the pool is dropped.
async fn reap(pool: Weak<Pool>, max_idle: Duration) {
    // An idle connection lives at most 1.5 times as long as `max_idle`.
    let pause = (max_idle / 2).max(Duration::from_millis(1));
    loop {
        sleep(pause).await;
        let Some(pool) = pool.upgrade() else {
            return;
        };
        pool.idle().retain(|idle| idle.is_reusable(max_idle));
    }
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The options contain the password.
        f.debug_struct("Pool")
            .field("idle", &self.idle().len())
            .finish_non_exhaustive()
    }
}

impl Pool {
    /// Creates a pool for units of work, without connections. Must be called in a Tokio runtime.
    pub(super) fn new(config: &PostgresConfig) -> Result<Arc<Self>, StoreError> {
        let options = Options::new(config)?;
        Ok(Self::with_options(PRIMARY, options, limit(config), config))
    }

    /// Creates a pool for work that needs a session, without connections. Must be called in a Tokio runtime.
    pub(super) fn direct(config: &PostgresConfig) -> Result<Arc<Self>, StoreError> {
        let options = Options::direct(config)?;
        Ok(Self::with_options(PRIMARY, options, limit(config), config))
    }

    /// Creates a pool to read and end prepared transactions, without connections. Must be called in a Tokio runtime.
    pub(super) fn for_prepared_units(config: &PostgresConfig) -> Result<Arc<Self>, StoreError> {
        let options = Options::direct(config)?;
        let limit = PREPARED_CONNECTIONS;
        Ok(Self::with_options(PREPARED, options, limit, config))
    }

    /// Creates a pool for units on a standby, without connections. Must be called in a Tokio runtime.
    pub(super) fn replica(config: &PostgresConfig, url: &str) -> Result<Arc<Self>, StoreError> {
        let options = Options::replica(config, url)?;
        Ok(Self::with_options(REPLICA, options, limit(config), config))
    }

    fn with_options(
        name: &'static str,
        options: Options,
        limit: usize,
        config: &PostgresConfig,
    ) -> Arc<Self> {
        let max_idle = config.max_idle;
        let openings = match options.is_pooled {
            true => Openings::of_pooler(&options.settings),
            false => Openings::of_session(),
        };
        Arc::new_cyclic(|pool| Self {
            name,
            options,
            openings,
            acquire_timeout: config.acquire_timeout,
            max_idle,
            permits: Arc::new(Semaphore::new(limit)),
            limit,
            waiting: AtomicUsize::new(0),
            idle: Mutex::default(),
            reaper: tokio::spawn(reap(pool.clone(), max_idle)),
        })
    }

    /// Returns a connection to the pool.
    fn put(&self, opened: PooledConnection) {
        let since = Instant::now();
        self.idle().push(Idle { opened, since });
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Acquires an idle connection, or opens a new one.
    pub(super) async fn acquire(self: &Arc<Self>) -> Result<Lease, StoreError> {
        let acquired = timeout(self.acquire_timeout, self.lease()).await;
        acquired
            .map_err(|_| StoreError::unavailable("no database connection became free in time"))?
    }

    /// Returns the current use of the connections.
    pub(super) fn state(&self) -> PoolState {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let in_use = self.limit.saturating_sub(self.permits.available_permits());
        PoolState {
            name: self.name,
            limit: number(self.limit),
            in_use: Some(number(in_use)),
            idle: Some(number(self.idle().len())),
            waiting: Some(number(self.waiting.load(Ordering::Relaxed))),
        }
    }

    async fn lease(self: &Arc<Self>) -> Result<Lease, StoreError> {
        let waiting = Waiting::new(&self.waiting);
        let permit = self.permits.clone().acquire_owned().await;
        drop(waiting);
        let permit = permit.map_err(StoreError::unavailable)?;
        let (opened, is_new) = match self.take_idle() {
            Some(opened) => (opened, false),
            None => (self.connect().await?, true),
        };
        Ok(Lease {
            opened: Some(opened),
            is_new,
            work: Work::None,
            pool: self.clone(),
            permit: Some(permit),
        })
    }

    fn take_idle(&self) -> Option<PooledConnection> {
        let mut idle = self.idle();
        while let Some(last) = idle.pop() {
            if last.is_reusable(self.max_idle) {
                return Some(last.opened);
            }
        }
        None
    }

    async fn connect(&self) -> Result<PooledConnection, StoreError> {
        let connected = timeout(self.acquire_timeout, Connection::open(&self.options)).await;
        let connected = connected
            .map_err(|_| StoreError::unavailable("connecting to the database timed out"))?;
        Ok(PooledConnection {
            connection: connected?,
            at: Instant::now(),
        })
    }

    /// Closes the idle connections. Called after one connection was found lost, because the others are probably lost
    /// too.
    pub(super) fn clear(&self) {
        self.idle().clear();
    }
}

/// A connection in use. Dropping it returns it to the pool; work in progress is ended first.
pub(super) struct Lease {
    opened: Option<PooledConnection>,
    /// Whether the connection was opened for this use.
    pub(super) is_new: bool,
    /// The work in progress, or the failed work that left a transaction open.
    pub(super) work: Work,
    pool: Arc<Pool>,
    /// Released after the connection is returned or closed, so that the pool never exceeds its size.
    permit: Option<OwnedSemaphorePermit>,
}

impl Lease {
    pub(super) fn connection(&mut self) -> Result<&mut Connection, StoreError> {
        let opened = self
            .opened
            .as_mut()
            .ok_or_else(|| RunError::Closed.into_failure());
        opened.map(|opened| &mut opened.connection)
    }

    /// Runs a statement that returns a position in the write-ahead log.
    pub(super) async fn read_position(
        &mut self,
        text: &str,
    ) -> Result<Option<Position>, StoreError> {
        self.work = Work::Statement;
        let outcome = self.connection()?.position(text).await;
        self.work = Work::None;
        outcome.map_err(|error| {
            self.handle_error(&error);
            error.into_failure()
        })
    }

    /// Replaces a lost connection by a new one.
    pub(super) async fn reconnect(&mut self) -> Result<(), StoreError> {
        self.opened = None;
        self.pool.clear();
        self.opened = Some(self.pool.connect().await?);
        self.is_new = true;
        Ok(())
    }

    /// Closes the connection instead of returning it to the pool.
    pub(super) fn discard(&mut self) {
        self.opened = None;
    }

    /// Closes the connection if it is lost, and also the idle ones if the whole server is affected.
    pub(super) fn handle_error(&mut self, error: &RunError) {
        if error.is_lost() {
            self.discard();
        }
        if error.is_of_server() {
            self.pool.clear();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(opened) = self.opened.take() else {
            return;
        };
        if self.work == Work::None {
            self.pool.put(opened);
            return;
        }
        // Without a runtime the process ends, and its connections with it.
        if let Ok(runtime) = Handle::try_current() {
            let can_cancel = self.work != Work::Commit;
            let (pool, permit) = (self.pool.clone(), self.permit.take());
            runtime.spawn(async move {
                release(&pool, opened, can_cancel).await;
                drop(permit);
            });
        }
    }
}

/// Ends the work in progress on a connection, and then returns it to the pool or closes it.
async fn release(pool: &Pool, mut opened: PooledConnection, can_cancel: bool) {
    if opened.connection.end_abandoned_work(can_cancel).await {
        pool.put(opened);
    } else {
        opened.connection.close().await;
    }
}
