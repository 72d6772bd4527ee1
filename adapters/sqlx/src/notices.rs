//! Notices between the processes of an installation, as notifications of the database.

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::kernel::{Effects, Notice, NoticeSet, ProcessName, StoreError};
use core_domain::port::{NoticeBuffer, Notices};
use core_storage::sql::postgres::{
    CURRENT_SCHEMA, check_schema_name, notice_channel, notify_statements,
};
use sqlx::PgPool;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::listener::{Listener, MIN_NOTIFY_INTERVAL, RECONNECT_DELAY, listen, notify};

/// A channel of notices between the processes of the installation in one schema of a database. It listens on a
/// connection of its own, which is not one of the pool and is opened again when it is lost. It notifies on a connection
/// of the pool. [`Notice::Missed`] arrives each time that this process has started to listen.
///
/// Dropping it closes the listening connection. So does closing the pool.
#[derive(Debug)]
pub struct PoolNotices {
    outgoing: Arc<NoticeBuffer>,
    incoming: Arc<NoticeBuffer>,
    tasks: [JoinHandle<()>; 2],
}

impl PoolNotices {
    /// Starts to listen. `schema` is the schema of the tables; `None` means the default schema of the pool's
    /// connections.
    /// `process` is the random name of this process. Must be called in a Tokio runtime.
    ///
    /// # Errors
    /// [`StoreError::Backend`] if the name of the schema is invalid. A database that cannot be reached causes no error:
    /// the connection is tried again.
    pub fn open(
        pool: &PgPool,
        schema: Option<String>,
        process: ProcessName,
    ) -> Result<Self, StoreError> {
        schema.as_deref().map_or(Ok(()), check_schema_name)?;
        let [outgoing, incoming]: [Arc<NoticeBuffer>; 2] = Default::default();
        let receiver = Receiver {
            schema: schema.clone(),
            incoming: Arc::clone(&incoming),
            process: process.clone(),
        };
        let sender = Sender {
            pool: pool.clone(),
            schema,
            outgoing: Arc::clone(&outgoing),
            process,
        };
        let tasks = [
            tokio::spawn(listen(pool.clone(), receiver)),
            tokio::spawn(sender.run()),
        ];
        Ok(Self {
            outgoing,
            incoming,
            tasks,
        })
    }
}

#[async_trait]
impl Notices for PoolNotices {
    fn publish(&self, effects: &Effects) {
        self.outgoing.add_effects(effects);
    }

    async fn receive(&self) -> Notice {
        self.incoming.next().await
    }
}

impl Drop for PoolNotices {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Returns the name of the channel of a schema; `None` means the default schema of the pool's connections.
async fn channel_of(pool: &PgPool, schema: Option<&str>) -> Result<String, sqlx::Error> {
    if let Some(schema) = schema {
        return Ok(notice_channel(schema));
    }
    let current: String = sqlx::query_scalar(CURRENT_SCHEMA).fetch_one(pool).await?;
    Ok(notice_channel(&current))
}

/// Buffers the notices of other processes.
struct Receiver {
    schema: Option<String>,
    incoming: Arc<NoticeBuffer>,
    process: ProcessName,
}

impl Listener for Receiver {
    async fn channel(&self, pool: &PgPool) -> Result<String, sqlx::Error> {
        channel_of(pool, self.schema.as_deref()).await
    }

    fn on_listening(&self) {
        self.incoming.add_missed();
    }

    fn on_notification(&self, payload: &str) {
        self.incoming.add_message(payload, &self.process);
    }
}

/// Sends the buffered notices.
struct Sender {
    pool: PgPool,
    schema: Option<String>,
    outgoing: Arc<NoticeBuffer>,
    process: ProcessName,
}

impl Sender {
    /// Sends until the pool is closed.
    async fn run(self) {
        // Found with the first notices, and the same from then on.
        let mut channel = None;
        loop {
            let mut notices = self.outgoing.take().await;
            while self.send(&mut channel, &notices).await.is_err() {
                if self.pool.is_closed() {
                    return;
                }
                // More notices may be lost while the connection is away.
                notices = NoticeSet::only_missed();
                sleep(RECONNECT_DELAY).await;
            }
            sleep(MIN_NOTIFY_INTERVAL).await;
        }
    }

    async fn send(
        &self,
        channel: &mut Option<String>,
        notices: &NoticeSet,
    ) -> Result<(), sqlx::Error> {
        let channel = match channel {
            Some(channel) => channel,
            None => channel.insert(channel_of(&self.pool, self.schema.as_deref()).await?),
        };
        let statements = notify_statements(channel, notices, &self.process);
        notify(&self.pool, &statements).await
    }
}
