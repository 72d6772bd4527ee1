//! Hints between the processes on one database. A hint tells the other processes to look for new work, without details.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::port::JobHints;
use core_storage::sql::ddl::quote_ident;
use sqlx::PgPool;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::listener::{Listener, MIN_NOTIFY_INTERVAL, RECONNECT_DELAY, listen, notify};

/// A channel of hints. It listens on a connection of its own, which is not one of the pool and is opened again when it
/// is lost. It notifies on a connection of the pool. A hint can be lost with its connection, and several hints can
/// arrive as one. Receivers must therefore also poll from time to time.
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
        let receiver = Receiver {
            channel,
            arrived: arrived.clone(),
        };
        let tasks = [
            tokio::spawn(listen(pool.clone(), receiver)),
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
    /// missed. Only one task may wait at a time.
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

/// Wakes the receiver of hints.
struct Receiver {
    channel: &'static str,
    arrived: Arc<Notify>,
}

impl Listener for Receiver {
    async fn channel(&self, _: &PgPool) -> Result<String, sqlx::Error> {
        Ok(self.channel.to_owned())
    }

    fn on_listening(&self) {
        self.arrived.notify_one();
    }

    fn on_notification(&self, _: &str) {
        self.arrived.notify_one();
    }
}

async fn send(pool: PgPool, channel: &'static str, to_send: Arc<Notify>) {
    let statement = format!("NOTIFY {}", quote_ident(channel));
    loop {
        to_send.notified().await;
        while notify(&pool, &statement).await.is_err() {
            if pool.is_closed() {
                return;
            }
            sleep(RECONNECT_DELAY).await;
        }
        sleep(MIN_NOTIFY_INTERVAL).await;
    }
}
