//! Hints between processes on one database: "there is something new", without saying what.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::StoreError;
use core_domain::port::JobHints;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::PostgresConfig;
use super::connection::Connection;
use super::error::RunError;
use super::options::Options;
use crate::sql::ddl::quoted;

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
        let options = Options::new(config)?;
        // A hint that is lost with a crash of the server is worth no wait for its disk.
        let sends_with = options.clone().with("synchronous_commit", "off");
        let (to_send, arrived) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let tasks = [
            tokio::spawn(listen(options.clone(), channel, arrived.clone())),
            tokio::spawn(send(sends_with, channel, to_send.clone())),
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

    /// Also returns after the listening connection was opened again, when some may have been missed, and after a silence.
    /// One task waits at a time.
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

async fn listen(options: Options, channel: &'static str, arrived: Arc<Notify>) {
    loop {
        // Ends with an error alone.
        let _ = listen_once(&options, channel, &arrived).await;
        sleep(RECONNECT).await;
    }
}

async fn listen_once(
    options: &Options,
    channel: &'static str,
    arrived: &Notify,
) -> Result<(), StoreError> {
    let mut connection = Connection::open(options).await?;
    connection
        .run(&format!("LISTEN {}", quoted(channel)))
        .await?;
    // What was notified before is not told again.
    arrived.notify_one();
    loop {
        let notified = connection.notified().await;
        notified.map_err(RunError::into_failure)?;
        arrived.notify_one();
    }
}

async fn send(options: Options, channel: &'static str, to_send: Arc<Notify>) {
    let notify = format!("NOTIFY {}", quoted(channel));
    let mut connection: Option<Connection> = None;
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
    options: &Options,
    notify: &str,
    connection: &mut Option<Connection>,
) -> Result<(), StoreError> {
    let connected = match connection {
        Some(connected) => connected,
        None => connection.insert(Connection::open(options).await?),
    };
    connected.run(notify).await
}
