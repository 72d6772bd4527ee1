//! The connection that all commands of a process share. A background task opens it, and opens it again when it is lost.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisError};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::stream::Target;

/// The pause before a connection is opened again.
pub(crate) const RECONNECT_DELAY: Duration = Duration::from_millis(500);

/// The reason why a command has no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error("there is no connection to Redis")]
    NotConnected,
    #[error("opening a connection to Redis timed out")]
    TimedOut,
    #[error("Redis: {0}")]
    Failed(String),
}

impl From<RedisError> for LinkError {
    /// Drops the text of a server's error, because some servers repeat the command in it, and with it the password.
    fn from(error: RedisError) -> Self {
        Self::Failed(match error.code() {
            Some(code) => code.to_owned(),
            None => error.category().to_owned(),
        })
    }
}

impl From<std::io::Error> for LinkError {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A connection that is opened again when it is lost.
pub(crate) struct Link {
    target: Arc<Target>,
    /// The open connection, if there is one.
    connection: watch::Receiver<Option<MultiplexedConnection>>,
    /// Notified after a failure, so that the connection is tested.
    suspect: Arc<Notify>,
    keeper: JoinHandle<()>,
}

// The connection and the target contain the password.
impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link")
            .field("address", &self.target.address())
            .field("is_connected", &self.connection.borrow().is_some())
            .finish_non_exhaustive()
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

impl Link {
    /// Starts to connect.
    pub(crate) fn open(target: Target) -> Self {
        let target = Arc::new(target);
        let (sender, connection) = watch::channel(None);
        let suspect = Arc::new(Notify::new());
        let keeper = Keeper {
            target: Arc::clone(&target),
            connection: sender,
            suspect: Arc::clone(&suspect),
        };
        Self {
            target,
            connection,
            suspect,
            keeper: tokio::spawn(keeper.run()),
        }
    }

    /// Returns the server, for connections of another kind.
    pub(crate) fn target(&self) -> &Arc<Target> {
        &self.target
    }

    /// Returns the connection. Does not wait.
    pub(crate) fn connection(&self) -> Result<MultiplexedConnection, LinkError> {
        let connection = self.connection.borrow().clone();
        connection.ok_or(LinkError::NotConnected)
    }

    /// Waits until there is a connection.
    pub(crate) async fn wait_until_connected(&self) {
        let mut connection = self.connection.clone();
        // The sender is dropped only together with the link.
        let _ = connection.wait_for(Option::is_some).await;
    }

    /// Returns the result of a command. After a failure the connection is tested.
    pub(crate) fn outcome<T>(&self, outcome: Result<T, RedisError>) -> Result<T, LinkError> {
        outcome.map_err(|error| {
            self.suspect.notify_one();
            error.into()
        })
    }
}

/// The task that opens the connection.
struct Keeper {
    target: Arc<Target>,
    connection: watch::Sender<Option<MultiplexedConnection>>,
    suspect: Arc<Notify>,
}

impl Keeper {
    async fn run(self) {
        let address = self.target.address();
        let mut is_reported = false;
        loop {
            match self.hold_connection(&address).await {
                Ok(()) => {
                    tracing::warn!(address, "the connection to Redis was lost");
                    is_reported = true;
                }
                Err(_) if is_reported => {}
                Err(problem) => {
                    tracing::warn!(address, %problem, "Redis cannot be reached");
                    is_reported = true;
                }
            }
            sleep(RECONNECT_DELAY).await;
        }
    }

    /// Opens a connection, and returns when it is lost.
    async fn hold_connection(&self, address: &str) -> Result<(), LinkError> {
        let target = &self.target;
        let open = async {
            let stream = target.open_stream().await?;
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(None)
                .set_response_timeout(Some(target.response_timeout));
            let open = MultiplexedConnection::new_with_config(target.login(), stream, config);
            Ok::<_, LinkError>(open.await?)
        };
        let opened = timeout(target.connect_timeout, open).await;
        let (connection, driver) = opened.unwrap_or(Err(LinkError::TimedOut))?;
        tracing::info!(address, "connected to Redis");
        self.connection.send_replace(Some(connection.clone()));
        let mut driver = pin!(driver);
        tokio::select! {
            () = &mut driver => {}
            () = self.failed_test(connection) => {}
        }
        self.connection.send_replace(None);
        Ok(())
    }

    /// Tests the connection after each failure of a command. Returns when a test fails. A command can also fail because
    /// the server is slow, or refuses it.
    async fn failed_test(&self, mut connection: MultiplexedConnection) {
        connection.set_response_timeout(self.target.connect_timeout);
        loop {
            self.suspect.notified().await;
            let test: Result<(), RedisError> =
                redis::cmd("PING").query_async(&mut connection).await;
            if test.is_err() {
                return;
            }
        }
    }
}
