//! Hints between the processes on one database. A hint tells the other processes to look for new work, without details.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::port::JobHints;
use core_storage::sql::ddl::quote_ident;
use sqlx::postgres::{PgListener, PgPoolOptions};
use sqlx::{AssertSqlSafe, Executor, PgPool};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

/// The minimum time between two notifications.
const PAUSE: Duration = Duration::from_millis(20);
/// The pause before a lost connection is opened again.
const RECONNECT: Duration = Duration::from_secs(1);
/// The time without a notification after which the listener checks that the server responds.
const SILENCE: Duration = Duration::from_secs(30);
/// Maximum wait for the reply to that check.
const MAX_CHECK: Duration = Duration::from_secs(5);

/// A channel of hints. It listens on a connection of its own, which is not one of the pool and is opened again when it is
/// lost. It notifies on a connection of the pool. A hint can be lost with its connection, and several hints can arrive as
/// one. Receivers must therefore also poll from time to time.
///
/// Dropping it closes the listening connection. So does closing the pool.
#[derive(Debug)]
pub struct Hints {
    to_send: Arc<Notify>,
    arrived: Arc<Notify>,
    tasks: [JoinHandle<()>; 2],
}

impl Hints {
    /// Starts to listen to the channel of the database. Must be called in a Tokio runtime. A database that cannot be
    /// reached causes no error: the connection is tried again.
    #[must_use]
    pub fn open(pool: &PgPool, channel: &'static str) -> Self {
        let (to_send, arrived) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let tasks = [
            tokio::spawn(listen(pool.clone(), channel, arrived.clone())),
            tokio::spawn(send(pool.clone(), channel, to_send.clone())),
        ];
        Self {
            to_send,
            arrived,
            tasks,
        }
    }
}

#[async_trait]
impl JobHints for Hints {
    /// Returns immediately. Hints within a short time are sent as one.
    async fn notify(&self) {
        self.to_send.notify_one();
    }

    /// Waits for a hint. Also returns after the listening connection was opened again, because hints may have been
    /// missed, and after a long silence. Only one task may wait at a time.
    async fn wait_for_hint(&self) {
        self.arrived.notified().await;
    }
}

impl Drop for Hints {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

async fn listen(pool: PgPool, channel: &'static str, arrived: Arc<Notify>) {
    while !pool.is_closed() {
        tokio::select! {
            // The function returns only with an error.
            _ = listen_once(&pool, channel, &arrived) => sleep(RECONNECT).await,
            () = pool.close_event() => return,
        }
    }
}

async fn listen_once(pool: &PgPool, channel: &str, arrived: &Notify) -> Result<(), sqlx::Error> {
    // The host program may have changed the options since the last connection, for example the password.
    let options = pool.connect_options().as_ref().clone();
    let own = PgPoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .connect_lazy_with(options);
    let mut listener = PgListener::connect_with(&own).await?;
    listener.listen(channel).await?;
    // Earlier notifications are not repeated, so wake the receiver once.
    arrived.notify_one();
    loop {
        match timeout(SILENCE, listener.try_recv()).await {
            Ok(Ok(Some(_))) => {}
            // The driver has opened the connection again.
            Ok(Ok(None)) => {}
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                let check = timeout(MAX_CHECK, listener.execute("SELECT 1")).await;
                check.map_err(|_| sqlx::Error::PoolTimedOut)??;
            }
        }
        arrived.notify_one();
    }
}

async fn send(pool: PgPool, channel: &'static str, to_send: Arc<Notify>) {
    // A hint that is lost when the server crashes does not justify a wait for its disk.
    let channel = quote_ident(channel);
    let notify = format!("BEGIN; SET LOCAL synchronous_commit = off; NOTIFY {channel}; COMMIT");
    loop {
        to_send.notified().await;
        while send_once(&pool, &notify).await.is_err() {
            if pool.is_closed() {
                return;
            }
            sleep(RECONNECT).await;
        }
        sleep(PAUSE).await;
    }
}

async fn send_once(pool: &PgPool, notify: &str) -> Result<(), sqlx::Error> {
    let notify = sqlx::raw_sql(AssertSqlSafe(notify)).execute(pool);
    notify.await.map(drop)
}
