//! Notices between the processes of an installation, as notifications of the database.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::kernel::{Effects, Notice, NoticeSet, ProcessName, StoreError};
use core_domain::port::{NoticeBuffer, Notices};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::PostgresConfig;
use super::channel::{Channel, Listener, MIN_NOTIFY_INTERVAL, RECONNECT_DELAY, Sender, listen};
use super::options::Options;
use crate::sql::postgres::notify_statements;

/// A channel of notices between the processes of the installation in one schema of a database. One connection listens
/// and one notifies; both are opened again when they are lost. [`Notice::Missed`] arrives each time that a process has
/// started to listen.
///
/// Notifications are sent on a connection of their own, because Postgres commits transactions that notify one after the
/// other. Notifications of 20 ms are sent together. Poolers that assign a connection to each transaction (PgBouncer in
/// transaction mode) do not forward notifications, so both connections go to the
/// [direct address](PostgresConfig::direct_url).
///
/// Dropping it closes the connections.
#[derive(Debug)]
pub struct PostgresNotices {
    outgoing: Arc<NoticeBuffer>,
    incoming: Arc<NoticeBuffer>,
    tasks: [JoinHandle<()>; 2],
}

impl PostgresNotices {
    /// Starts to listen. `process` is the random name of this process. Must be called in a Tokio runtime.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the URL or the name of the schema is invalid. A database that cannot be reached
    /// causes no error: the connection is tried again.
    pub fn open(config: &PostgresConfig, process: ProcessName) -> Result<Self, StoreError> {
        let options = Options::direct(config)?;
        let channel = Channel::OfSchema(config.schema.clone());
        let sender = Sender::new(options.clone(), channel.clone());
        let [outgoing, incoming]: [Arc<NoticeBuffer>; 2] = Default::default();
        let receiver = Receiver {
            incoming: Arc::clone(&incoming),
            process: process.clone(),
        };
        let tasks = [
            tokio::spawn(listen(options, channel, receiver)),
            tokio::spawn(send(sender, Arc::clone(&outgoing), process)),
        ];
        Ok(Self {
            outgoing,
            incoming,
            tasks,
        })
    }
}

#[async_trait]
impl Notices for PostgresNotices {
    fn publish(&self, effects: &Effects) {
        self.outgoing.add_effects(effects);
    }

    async fn receive(&self) -> Notice {
        self.incoming.next().await
    }
}

impl Drop for PostgresNotices {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Buffers the notices of other processes.
struct Receiver {
    incoming: Arc<NoticeBuffer>,
    process: ProcessName,
}

impl Listener for Receiver {
    fn on_listening(&self) {
        self.incoming.add_missed();
    }

    fn on_notification(&self, payload: &str) {
        self.incoming.add_message(payload, &self.process);
    }
}

async fn send(mut sender: Sender, outgoing: Arc<NoticeBuffer>, process: ProcessName) {
    loop {
        let mut notices = outgoing.take().await;
        loop {
            let notify = |channel: &str| notify_statements(channel, &notices, &process);
            if sender.send(notify).await.is_ok() {
                break;
            }
            // More notices may be lost while the connection is away.
            notices = NoticeSet::only_missed();
            sleep(RECONNECT_DELAY).await;
        }
        sleep(MIN_NOTIFY_INTERVAL).await;
    }
}
