//! Sends what waits in the outbox, on tokio.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::{Entropy, Result};
use core_domain::port::{Outlet, OutletError, Store};
use core_domain::shared::OutboxMessage;
use core_domain::use_case::shared::{LoneRelay, Relayed, relay};
use tokio::sync::{Notify, watch};

use crate::background_task::BackgroundTask;

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

/// What the relay works with.
pub(crate) struct Relay {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) outlet: Arc<dyn Outlet>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) wake: Arc<Notify>,
    /// Set where no other process uses the store.
    pub(crate) lone: Option<LoneRelay>,
}

impl Relay {
    /// Starts sending on the current tokio runtime; asked to end, it lets the delivery under way end. What a relay was sending that
    /// is cut off is sent again.
    pub(crate) fn start(self) -> BackgroundTask {
        BackgroundTask::start(|stopped| self.run(stopped))
    }

    async fn relay(&mut self) -> Result<Relayed> {
        let (store, outlet, entropy) = (&*self.store, &*self.outlet, &*self.entropy);
        match &mut self.lone {
            Some(lone) => lone.relay(store, outlet, entropy).await,
            None => relay(store, outlet, entropy).await,
        }
    }

    async fn run(mut self, mut stopped: watch::Receiver<bool>) {
        while !*stopped.borrow() {
            match self.relay().await {
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
    use std::sync::atomic::{AtomicBool, Ordering};

    use core_domain::kernel::StoreError;
    use core_domain::kernel::{Clock, OutboxId, Timestamp};
    use core_domain::port::{Mode, UnitOfWork, transact};
    use core_domain::testing::{ManualClock, MockOutlet, RecordKey, SeededEntropy};
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

        /// One run of a relay of either kind.
        async fn relay(
            &self,
            lone: &mut Option<LoneRelay>,
            outlet: impl Outlet + 'static,
        ) -> Result<Relayed> {
            let mut relay = Relay {
                store: self.store.clone(),
                outlet: Arc::new(outlet),
                entropy: self.entropy.clone(),
                wake: Arc::default(),
                lone: lone.take(),
            };
            let relayed = relay.relay().await;
            *lone = relay.lone;
            relayed
        }

        fn heard(&self) -> Vec<String> {
            std::mem::take(&mut *self.heard.lock().unwrap())
        }
    }

    fn both_kinds() -> [Option<LoneRelay>; 2] {
        [None, Some(LoneRelay::default())]
    }

    #[tokio::test]
    async fn a_message_is_delivered_once_and_forgotten() {
        for mut kind in both_kinds() {
            let world = World::with(&["first", "second"]).await;
            let first = world.relay(&mut kind, world.outlet("none")).await;
            assert_eq!(first.unwrap().delivered, 2);
            let second = world.relay(&mut kind, world.outlet("none")).await;
            assert!(second.unwrap().is_idle());
            assert_eq!(world.heard(), ["first", "second"]);
        }
    }

    #[tokio::test]
    async fn a_message_that_is_not_taken_holds_up_nobody_and_comes_again_after_a_pause() {
        for mut kind in both_kinds() {
            let world = World::with(&["bad", "good"]).await;
            let (delivered, kept) = (1, 1);
            let first = world.relay(&mut kind, world.outlet("bad")).await;
            assert_eq!(first.unwrap(), Relayed { delivered, kept });
            let at_once = world.relay(&mut kind, world.outlet("bad")).await;
            assert!(at_once.unwrap().is_idle());
            world.clock.advance(Duration::from_secs(2));
            let later = world.relay(&mut kind, world.outlet("none")).await;
            assert_eq!(later.unwrap().delivered, 1);
            assert_eq!(world.heard(), ["good", "bad"]);
        }
    }

    #[tokio::test]
    async fn an_attempt_counts_once_and_the_outlet_is_told_which_it_is() {
        for mut kind in both_kinds() {
            let world = World::with(&["first"]).await;
            for attempt in 1..=3 {
                let mut outlet = MockOutlet::new();
                outlet.expect_deliver().once().returning(move |message| {
                    assert_eq!(message.attempts, attempt);
                    Err(OutletError("not now".to_owned()))
                });
                let relayed = world.relay(&mut kind, outlet).await;
                assert_eq!(relayed.unwrap().kept, 1);
                world.clock.advance(Duration::from_secs(300));
            }
        }
    }

    /// A store that answers and, while it is told so, does not write.
    #[derive(Debug)]
    struct Full(Arc<dyn Store>, AtomicBool);

    #[async_trait]
    impl Store for Full {
        async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError> {
            let is_read = matches!(mode, Mode::Auto | Mode::Read);
            if !is_read && self.1.load(Ordering::SeqCst) {
                return Err(StoreError::unavailable("the disk is full"));
            }
            self.0.begin(mode).await
        }

        async fn back_off(&self, _: u32) {}
    }

    #[tokio::test]
    async fn what_was_delivered_and_cannot_be_recorded_is_not_told_again_by_a_lone_relay() {
        let mut world = World::with(&["first", "bad"]).await;
        let full = Arc::new(Full(world.store.clone(), AtomicBool::new(true)));
        world.store = full.clone();
        let mut lone = Some(LoneRelay::default());
        for _ in 0..3 {
            let failed = world.relay(&mut lone, world.outlet("bad")).await;
            failed.unwrap_err();
        }
        full.1.store(false, Ordering::SeqCst);
        world.send("second").await;
        let relayed = world.relay(&mut lone, world.outlet("bad")).await;
        assert_eq!(relayed.unwrap().delivered, 1);
        assert_eq!(world.heard(), ["first", "second"]);
        world.clock.advance(Duration::from_secs(2));
        let relayed = world.relay(&mut lone, world.outlet("none")).await;
        assert_eq!(relayed.unwrap().delivered, 1);
        assert_eq!(world.heard(), ["bad"]);
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
        // Others wait for a relay that may still be at it; the next one of a store that has one alone need not.
        for (mut kind, mut next, waits) in [
            (None, None, true),
            (
                Some(LoneRelay::default()),
                Some(LoneRelay::default()),
                false,
            ),
        ] {
            let world = World::with(&["first", "second", "third"]).await;
            let dying = Dying(Arc::clone(&world.heard));
            assert!(world.relay(&mut kind, dying).now_or_never().is_none());
            assert_eq!(world.heard().len(), 1);
            if waits {
                let relayed = world.relay(&mut next, world.outlet("none")).await;
                assert!(relayed.unwrap().is_idle());
                world.clock.advance(Duration::from_secs(60));
            }
            let relayed = world.relay(&mut next, world.outlet("none")).await;
            assert_eq!(relayed.unwrap().delivered, 3);
            let mut heard = world.heard();
            heard.sort();
            assert_eq!(heard, ["first", "second", "third"]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_relay_looks_by_itself_and_ends_when_it_is_stopped() {
        let world = World::with(&["first"]).await;
        let relay = Relay {
            store: world.store.clone(),
            outlet: Arc::new(world.outlet("none")),
            entropy: world.entropy.clone(),
            wake: Arc::default(),
            lone: None,
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
