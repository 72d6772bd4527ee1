//! Notices between the processes of an installation, with `PUBLISH` and `SUBSCRIBE`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::{Effects, Notice, NoticeSet, ProcessName};
use core_domain::port::{NoticeBuffer, Notices};
use futures_util::StreamExt;
use redis::aio::{PubSub, PubSubSink};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::link::{Link, LinkError, RECONNECT_DELAY};
use crate::stream::Target;

/// Maximum size of a message, in bytes.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;
/// The minimum time between two messages. Notices of a shorter time are sent together.
const MIN_PUBLISH_INTERVAL: Duration = Duration::from_millis(10);
/// The time without a message after which the receiver checks that the server responds.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// A channel of notices between the processes that use the same Redis server, database and key prefix.
/// [`Notice::Missed`] arrives each time that this process has subscribed.
///
/// Dropping it closes the connection that is subscribed.
#[derive(Debug)]
pub struct RedisNotices {
    outgoing: Arc<NoticeBuffer>,
    incoming: Arc<NoticeBuffer>,
    tasks: [JoinHandle<()>; 2],
}

impl RedisNotices {
    pub(crate) fn open(link: Arc<Link>, key_prefix: &str, process: ProcessName) -> Self {
        // Channels are common to all databases of a server.
        let channel = format!("{key_prefix}notices:{}", link.target().login().db());
        let [outgoing, incoming]: [Arc<NoticeBuffer>; 2] = Default::default();
        let receiver = Receiver {
            target: Arc::clone(link.target()),
            channel: channel.clone(),
            process: process.clone(),
            incoming: Arc::clone(&incoming),
        };
        let sender = Sender {
            link,
            channel,
            process,
            outgoing: Arc::clone(&outgoing),
        };
        Self {
            outgoing,
            incoming,
            tasks: [tokio::spawn(receiver.run()), tokio::spawn(sender.run())],
        }
    }
}

#[async_trait]
impl Notices for RedisNotices {
    fn publish(&self, effects: &Effects) {
        self.outgoing.add_effects(effects);
    }

    async fn receive(&self) -> Notice {
        self.incoming.next().await
    }
}

impl Drop for RedisNotices {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// Publishes the buffered notices.
struct Sender {
    link: Arc<Link>,
    channel: String,
    process: ProcessName,
    outgoing: Arc<NoticeBuffer>,
}

impl Sender {
    async fn run(self) {
        loop {
            let mut notices = self.outgoing.take().await;
            while self.send(&notices).await.is_err() {
                // More notices may be lost while the connection is away.
                notices = NoticeSet::only_missed();
                sleep(RECONNECT_DELAY).await;
                self.link.wait_until_connected().await;
            }
            sleep(MIN_PUBLISH_INTERVAL).await;
        }
    }

    async fn send(&self, notices: &NoticeSet) -> Result<(), LinkError> {
        let mut connection = self.link.connection()?;
        for message in notices.to_messages(&self.process, MAX_MESSAGE_BYTES) {
            let mut publish = redis::cmd("PUBLISH");
            publish.arg(&self.channel).arg(message);
            self.link
                .outcome(publish.exec_async(&mut connection).await)?;
        }
        Ok(())
    }
}

/// Buffers the notices of other processes.
struct Receiver {
    target: Arc<Target>,
    channel: String,
    process: ProcessName,
    incoming: Arc<NoticeBuffer>,
}

impl Receiver {
    async fn run(self) {
        loop {
            // The function returns only with an error. The state of the server is logged by the link.
            if let Err(problem) = self.subscribe().await {
                tracing::debug!(%problem, "the subscription of notices has ended");
            }
            sleep(RECONNECT_DELAY).await;
        }
    }

    /// Subscribes, and receives until the connection is lost.
    async fn subscribe(&self) -> Result<(), LinkError> {
        let open = timeout(self.target.connect_timeout, self.open()).await;
        let (mut sink, mut messages) = open.unwrap_or(Err(LinkError::TimedOut))?.split();
        self.incoming.add_missed();
        loop {
            match timeout(CHECK_INTERVAL, messages.next()).await {
                Ok(Some(message)) => {
                    let text = String::from_utf8_lossy(message.get_payload_bytes());
                    self.incoming.add_message(&text, &self.process);
                }
                Ok(None) => return Err(LinkError::NotConnected),
                Err(_) => check(&mut sink, self.target.connect_timeout).await?,
            }
        }
    }

    async fn open(&self) -> Result<PubSub, LinkError> {
        let stream = self.target.open_stream().await?;
        let mut connection = PubSub::new(self.target.login(), stream).await?;
        connection.subscribe(&self.channel).await?;
        Ok(connection)
    }
}

/// Checks that the server responds.
async fn check(sink: &mut PubSubSink, limit: Duration) -> Result<(), LinkError> {
    let ping = timeout(limit, sink.ping::<redis::Value>()).await;
    Ok(ping.map_err(|_| LinkError::TimedOut)?.map(drop)?)
}
