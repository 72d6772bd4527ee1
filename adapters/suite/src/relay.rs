//! Sends what waits in the outbox, on tokio.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::Entropy;
use core_domain::port::{Outlet, OutletError, Store};
use core_domain::shared::OutboxMessage;
use core_domain::use_case::shared::relay;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

/// How often the outbox is looked at when nobody calls.
const POLL: Duration = Duration::from_secs(1);

/// How long a message may wait for others, so that one unit of work claims and one acknowledges them all.
const GATHER: Duration = Duration::from_millis(10);

/// Writes every message to the log, for installations where nobody else listens.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogOutlet;

#[async_trait]
impl Outlet for LogOutlet {
    async fn deliver(&self, message: &OutboxMessage) -> Result<(), OutletError> {
        tracing::info!(target: "core::outbox", id = %message.id, topic = message.topic, payload = %message.payload, "message");
        Ok(())
    }
}

/// Sends until it is stopped. Dropped, it is cut off; what it was sending is sent again.
#[derive(Debug)]
pub(crate) struct RelayHandle {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl RelayHandle {
    /// Lets the delivery under way end.
    pub(crate) async fn stop(mut self) {
        self.stop.send_replace(true);
        // One that panicked has stopped as well.
        let _ = (&mut self.task).await;
    }
}

impl Drop for RelayHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What the relay works with.
pub(crate) struct Relay {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) outlet: Arc<dyn Outlet>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) wake: Arc<Notify>,
}

impl Relay {
    /// Starts sending on the current tokio runtime.
    pub(crate) fn start(self) -> RelayHandle {
        let (stop, stopped) = watch::channel(false);
        RelayHandle {
            stop,
            task: tokio::spawn(self.run(stopped)),
        }
    }

    async fn run(self, mut stopped: watch::Receiver<bool>) {
        while !*stopped.borrow() {
            match relay(&*self.store, &*self.outlet, &*self.entropy).await {
                Ok(relayed) if relayed.is_full() => continue,
                Ok(_) => {}
                Err(error) => tracing::warn!(?error, "the outbox could not be sent"),
            }
            let woken = tokio::select! {
                () = self.wake.notified() => true,
                () = tokio::time::sleep(POLL) => false,
                _ = stopped.wait_for(|stopped| *stopped) => false,
            };
            if woken {
                tokio::time::sleep(GATHER).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use core_domain::kernel::{Clock, OutboxId, Timestamp};
    use core_domain::port::transact;
    use core_domain::testing::{ManualClock, MockOutlet, RecordKey, SeededEntropy};
    use core_domain::use_case::shared::Relayed;
    use core_storage::memory::{MemoryConfig, open};
    use futures_util::FutureExt;
    use serde_json::json;

    use super::*;

    struct World {
        clock: Arc<ManualClock>,
        store: Arc<dyn Store>,
        entropy: Arc<SeededEntropy>,
        heard: Arc<Mutex<Vec<String>>>,
    }

    impl World {
        async fn with(topics: &[&'static str]) -> Self {
            let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_000)));
            let store = open(MemoryConfig {
                clock: clock.clone(),
                cursor_key: [1; 32].into(),
            });
            let world = Self {
                clock,
                store,
                entropy: Arc::new(SeededEntropy::new(1)),
                heard: Arc::default(),
            };
            for topic in topics {
                world.send(topic).await;
            }
            world
        }

        async fn send(&self, topic: &str) {
            let now = self.clock.now();
            let message = &OutboxMessage {
                id: OutboxId::generate(now, self.entropy.as_ref()),
                topic: topic.to_owned(),
                payload: json!({}),
                attempts: 0,
                run_at: now,
                created_at: now,
            };
            let sent = transact(self.store.as_ref(), |uow, _| {
                Box::pin(async move {
                    let repositories = uow.repositories(RecordKey::for_tests());
                    let messages = repositories.outbox_messages();
                    messages.insert(message.clone()).await?;
                    Ok(())
                })
            });
            sent.await.unwrap();
        }

        /// Takes every message but those of one topic.
        fn outlet(&self, refused: &'static str) -> MockOutlet {
            let heard = Arc::clone(&self.heard);
            let mut outlet = MockOutlet::new();
            outlet.expect_deliver().returning(move |message| {
                if message.topic == refused {
                    return Err(OutletError("not now".to_owned()));
                }
                heard.lock().unwrap().push(message.topic.clone());
                Ok(())
            });
            outlet
        }

        async fn relay(&self, outlet: &dyn Outlet) -> Relayed {
            let relayed = relay(self.store.as_ref(), outlet, self.entropy.as_ref()).await;
            relayed.unwrap()
        }

        fn heard(&self) -> Vec<String> {
            std::mem::take(&mut *self.heard.lock().unwrap())
        }
    }

    #[tokio::test]
    async fn a_message_is_delivered_once_and_forgotten() {
        let world = World::with(&["first", "second"]).await;
        let outlet = world.outlet("none");
        assert_eq!(world.relay(&outlet).await.delivered, 2);
        assert!(world.relay(&outlet).await.is_idle());
        assert_eq!(world.heard(), ["first", "second"]);
    }

    #[tokio::test]
    async fn a_message_that_is_not_taken_holds_up_nobody_and_comes_again_after_a_pause() {
        let world = World::with(&["bad", "good"]).await;
        let (delivered, kept) = (1, 1);
        let unwilling = world.outlet("bad");
        assert_eq!(world.relay(&unwilling).await, Relayed { delivered, kept });
        assert!(world.relay(&unwilling).await.is_idle());
        world.clock.advance(Duration::from_secs(2));
        assert_eq!(world.relay(&world.outlet("none")).await.delivered, 1);
        assert_eq!(world.heard(), ["good", "bad"]);
    }

    /// Dies with the second message.
    #[derive(Debug)]
    struct Dying(Arc<Mutex<Vec<String>>>);

    #[async_trait]
    impl Outlet for Dying {
        async fn deliver(&self, message: &OutboxMessage) -> Result<(), OutletError> {
            if !self.0.lock().unwrap().is_empty() {
                std::future::pending().await
            }
            self.0.lock().unwrap().push(message.topic.clone());
            Ok(())
        }
    }

    #[tokio::test]
    async fn what_was_delivered_before_its_relay_died_is_delivered_again_and_nothing_is_lost() {
        let world = World::with(&["first", "second", "third"]).await;
        let dying = Dying(Arc::clone(&world.heard));
        assert!(world.relay(&dying).now_or_never().is_none());
        assert_eq!(world.heard().len(), 1);
        let outlet = world.outlet("none");
        assert!(world.relay(&outlet).await.is_idle());
        world.clock.advance(Duration::from_secs(60));
        assert_eq!(world.relay(&outlet).await.delivered, 3);
        let mut heard = world.heard();
        heard.sort();
        assert_eq!(heard, ["first", "second", "third"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_relay_looks_by_itself_and_ends_when_it_is_stopped() {
        let world = World::with(&["first"]).await;
        let relay = Relay {
            store: world.store.clone(),
            outlet: Arc::new(world.outlet("none")),
            entropy: world.entropy.clone(),
            wake: Arc::default(),
        };
        let relay = relay.start();
        tokio::time::sleep(POLL / 2).await;
        assert_eq!(world.heard(), ["first"]);
        world.send("second").await;
        assert!(world.heard().is_empty());
        tokio::time::sleep(POLL).await;
        assert_eq!(world.heard(), ["second"]);
        relay.stop().await;
    }
}
