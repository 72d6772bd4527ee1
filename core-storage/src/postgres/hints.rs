//! Hints between the processes on one database. A hint tells the other processes to look for new work, without details.

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
use super::options::Options;
use crate::sql::ddl::quote_ident;
use crate::sql::postgres::RunError;

/// The minimum time between two notifications.
const MIN_NOTIFY_INTERVAL: Duration = Duration::from_millis(20);
/// The pause before a lost connection is opened again.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);

/// A channel of hints. One connection listens and one notifies; both are opened again when they are lost. A hint can be
/// lost with its connection, and several hints can arrive as one. Receivers must therefore also poll from time to time.
///
/// Dropping it closes the connections.
#[derive(Debug)]
pub struct Hints {
    notify_requested: Arc<Notify>,
    hint_received: Arc<Notify>,
    tasks: [JoinHandle<()>; 2],
}

impl Hints {
    /// Starts to listen to the channel of the database. The name of the channel consists of lower-case letters, digits
    /// and `_`.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the URL is invalid. A database that cannot be reached causes no error: the connection
    /// is tried again.
    pub fn open(config: &PostgresConfig, channel: &'static str) -> Result<Self, StoreError> {
        let options = Options::new(config)?;
        // A hint that is lost when the server crashes does not justify a wait for its disk.
        let sends_with = options.clone().with("synchronous_commit", "off");
        let (to_send, arrived) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let tasks = [
            tokio::spawn(listen(options.clone(), channel, arrived.clone())),
            tokio::spawn(send(sends_with, channel, to_send.clone())),
        ];
        Ok(Self {
            notify_requested: to_send,
            hint_received: arrived,
            tasks,
        })
    }
}

#[async_trait]
impl JobHints for Hints {
    /// Returns immediately. Hints within a short time are sent as one.
    async fn notify(&self) {
        self.notify_requested.notify_one();
    }

    /// Waits for a hint. Also returns after the listening connection was opened again, because hints may have been
    /// missed, and after a long silence. Only one task may wait at a time.
    async fn wait_for_hint(&self) {
        self.hint_received.notified().await;
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
        // The function returns only with an error.
        let _ = listen_once(&options, channel, &arrived).await;
        sleep(RECONNECT_DELAY).await;
    }
}

async fn listen_once(
    options: &Options,
    channel: &'static str,
    arrived: &Notify,
) -> Result<(), StoreError> {
    let mut connection = Connection::open(options).await?;
    connection
        .run(&format!("LISTEN {}", quote_ident(channel)))
        .await?;
    // Earlier notifications are not repeated, so wake the receiver once.
    arrived.notify_one();
    loop {
        let notified = connection.wait_for_notification().await;
        notified.map_err(RunError::into_failure)?;
        arrived.notify_one();
    }
}

async fn send(options: Options, channel: &'static str, to_send: Arc<Notify>) {
    let notify = format!("NOTIFY {}", quote_ident(channel));
    let mut connection: Option<Connection> = None;
    loop {
        to_send.notified().await;
        while send_once(&options, &notify, &mut connection).await.is_err() {
            connection = None;
            sleep(RECONNECT_DELAY).await;
        }
        sleep(MIN_NOTIFY_INTERVAL).await;
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
