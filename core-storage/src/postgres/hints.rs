//! Hints between processes on one database: "there is something new", without saying what.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::StoreError;
use core_domain::port::JobHints;
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::PostgresConfig;
use super::error::failure;
use super::options::connect_options;
use crate::sql::ddl::text_literal;

/// There is at most one notification in this time.
const PAUSE: Duration = Duration::from_millis(20);
/// How long a lost connection is left alone.
const RECONNECT: Duration = Duration::from_secs(1);

/// A channel of hints: one connection that listens and one that notifies, both opened again when they are lost. A hint
/// may be lost with them, and several may arrive as one: whoever waits for hints looks from time to time as well.
///
/// Its connections end with it.
#[derive(Debug)]
pub struct Hints {
    to_send: Arc<Notify>,
    arrived: Arc<Notify>,
    tasks: [JoinHandle<()>; 2],
}

impl Hints {
    /// Listens to the channel of the database. The name is that of the channel: small letters, digits and `_`.
    ///
    /// # Errors
    /// [`StoreError::Backend`] when the address is not valid. A database that cannot be reached is no error: it is tried
    /// again.
    pub fn open(config: &PostgresConfig, channel: &'static str) -> Result<Self, StoreError> {
        let options = connect_options(config)?;
        let (to_send, arrived) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let tasks = [
            tokio::spawn(listen(options.clone(), channel, arrived.clone())),
            tokio::spawn(send(options, channel, to_send.clone())),
        ];
        Ok(Self {
            to_send,
            arrived,
            tasks,
        })
    }
}

#[async_trait]
impl JobHints for Hints {
    /// Waits for nothing; hints that come close together are one.
    async fn notify(&self) {
        self.to_send.notify_one();
    }

    /// Also returns after the listening connection was opened again, when some may have been missed. One task waits at a
    /// time.
    async fn hinted(&self) {
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

async fn listen(options: PgConnectOptions, channel: &'static str, arrived: Arc<Notify>) {
    loop {
        // Ends with an error alone.
        let _ = listen_once(&options, channel, &arrived).await;
        sleep(RECONNECT).await;
    }
}

async fn listen_once(
    options: &PgConnectOptions,
    channel: &str,
    arrived: &Notify,
) -> Result<(), sqlx::Error> {
    let one = PgPoolOptions::new().max_connections(1);
    let pool = one.connect_with(options.clone()).await?;
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.listen(channel).await?;
    // What was notified before is not told again.
    arrived.notify_one();
    loop {
        // Without a notification the connection was lost and is opened again.
        let _ = listener.try_recv().await?;
        arrived.notify_one();
    }
}

async fn send(options: PgConnectOptions, channel: &'static str, to_send: Arc<Notify>) {
    let notify = format!("NOTIFY \"{channel}\", {}", text_literal(""));
    let mut connection: Option<PgConnection> = None;
    loop {
        to_send.notified().await;
        while send_once(&options, &notify, &mut connection).await.is_err() {
            connection = None;
            sleep(RECONNECT).await;
        }
        sleep(PAUSE).await;
    }
}

async fn send_once(
    options: &PgConnectOptions,
    notify: &str,
    connection: &mut Option<PgConnection>,
) -> Result<(), StoreError> {
    if connection.is_none() {
        // A hint that is lost with a crash of the server is worth no wait for its disk.
        let options = options.clone().options([("synchronous_commit", "off")]);
        *connection = Some(options.connect().await.map_err(failure)?);
    }
    let connected = connection.as_mut();
    let connected = connected.ok_or_else(|| StoreError::unavailable("no connection"))?;
    let sent = sqlx::raw_sql(AssertSqlSafe(notify.to_owned()));
    sent.execute(connected).await.map(|_| ()).map_err(failure)
}
