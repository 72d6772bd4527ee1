//! The connections. Taking one and giving it back costs no round trip.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use core_domain::kernel::StoreError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::PostgresConfig;
use super::connection::Connection;
use super::error::closed;
use super::options::Options;

/// A connection that nobody used for so long is closed: something on the way may have forgotten it.
const MAX_IDLE: Duration = Duration::from_secs(10 * 60);
/// A connection is closed after so long: its server process keeps what it has learned of tables and plans.
const MAX_AGE: Duration = Duration::from_secs(30 * 60);

/// A connection, and when it was opened.
struct Opened {
    connection: Connection,
    at: Instant,
}

struct Idle {
    opened: Opened,
    since: Instant,
}

impl Idle {
    fn is_fit(&self) -> bool {
        self.since.elapsed() < MAX_IDLE && self.opened.at.elapsed() < MAX_AGE
    }
}

/// The connections of a store: those that nobody uses, the last one given back first.
pub(super) struct Pool {
    options: Options,
    acquire_timeout: Duration,
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Idle>>,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The options hold the password.
        f.debug_struct("Pool")
            .field("idle", &self.idle().len())
            .finish_non_exhaustive()
    }
}

impl Pool {
    pub(super) fn new(config: &PostgresConfig) -> Result<Arc<Self>, StoreError> {
        let connections = usize::try_from(config.connections.max(2));
        let connections = connections.unwrap_or(Semaphore::MAX_PERMITS);
        Ok(Arc::new(Self {
            options: Options::new(config)?,
            acquire_timeout: config.acquire_timeout,
            permits: Arc::new(Semaphore::new(connections)),
            idle: Mutex::default(),
        }))
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection: one that nobody uses, else a new one.
    pub(super) async fn acquire(self: &Arc<Self>) -> Result<Lease, StoreError> {
        let acquired = timeout(self.acquire_timeout, self.lease()).await;
        acquired.map_err(|_| StoreError::unavailable("no connection became free in time"))?
    }

    async fn lease(self: &Arc<Self>) -> Result<Lease, StoreError> {
        let permit = self.permits.clone().acquire_owned().await;
        let permit = permit.map_err(StoreError::unavailable)?;
        let (opened, is_new) = match self.take_idle() {
            Some(opened) => (opened, false),
            None => (self.connect().await?, true),
        };
        Ok(Lease {
            opened: Some(opened),
            is_new,
            is_busy: false,
            pool: self.clone(),
            _permit: permit,
        })
    }

    fn take_idle(&self) -> Option<Opened> {
        let mut idle = self.idle();
        while let Some(last) = idle.pop() {
            if last.is_fit() {
                return Some(last.opened);
            }
        }
        None
    }

    async fn connect(&self) -> Result<Opened, StoreError> {
        let connected = timeout(self.acquire_timeout, Connection::open(&self.options)).await;
        let connected =
            connected.map_err(|_| StoreError::unavailable("connecting takes too long"))?;
        Ok(Opened {
            connection: connected?,
            at: Instant::now(),
        })
    }

    /// Forgets the connections that nobody uses: one of them was found lost, so others are as well.
    pub(super) fn clear(&self) {
        self.idle().clear();
    }
}

/// A connection in use. It is given back when it is dropped, unless something is under way on it.
pub(super) struct Lease {
    opened: Option<Opened>,
    /// Whether it was opened for this use.
    pub(super) is_new: bool,
    /// Whether a statement is under way, or a transaction is open.
    pub(super) is_busy: bool,
    pool: Arc<Pool>,
    // Released after the connection was given back.
    _permit: OwnedSemaphorePermit,
}

impl Lease {
    pub(super) fn connection(&mut self) -> Result<&mut Connection, StoreError> {
        let opened = self.opened.as_mut().ok_or_else(closed);
        opened.map(|opened| &mut opened.connection)
    }

    /// Puts a new connection in the place of a lost one.
    pub(super) async fn reconnect(&mut self) -> Result<(), StoreError> {
        self.opened = None;
        self.pool.clear();
        self.opened = Some(self.pool.connect().await?);
        self.is_new = true;
        Ok(())
    }

    /// Does not give the connection back.
    pub(super) fn forget(&mut self) {
        self.opened = None;
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(opened) = self.opened.take() else {
            return;
        };
        if self.is_busy {
            // Dropping it closes it: the server ends what is under way, and nobody waits for it here.
            return;
        }
        let since = Instant::now();
        self.pool.idle().push(Idle { opened, since });
    }
}
