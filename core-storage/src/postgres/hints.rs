//! Hints between the processes on one database. A hint tells the other processes to look for new work, without details.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::kernel::StoreError;
use core_domain::port::JobHints;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::PostgresConfig;
use super::channel::{Channel, Listener, MIN_NOTIFY_INTERVAL, RECONNECT_DELAY, Sender, listen};
use super::options::Options;
use crate::sql::ddl::quote_ident;

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
        let options = Options::direct(config)?;
        let sender = Sender::new(options.clone(), Channel::Named(channel));
        let (to_send, arrived) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let receiver = Receiver(Arc::clone(&arrived));
        let tasks = [
            tokio::spawn(listen(options, Channel::Named(channel), receiver)),
            tokio::spawn(send(sender, to_send.clone())),
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
    /// missed. Only one task may wait at a time.
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

/// Wakes the receiver of hints.
struct Receiver(Arc<Notify>);

impl Listener for Receiver {
    fn on_listening(&self) {
        self.0.notify_one();
    }

    fn on_notification(&self, _: &str) {
        self.0.notify_one();
    }
}

async fn send(mut sender: Sender, to_send: Arc<Notify>) {
    let notify = |channel: &str| format!("NOTIFY {}", quote_ident(channel));
    loop {
        to_send.notified().await;
        while sender.send(notify).await.is_err() {
            sleep(RECONNECT_DELAY).await;
        }
        sleep(MIN_NOTIFY_INTERVAL).await;
    }
}
