//! Passes messages of the outbox to the outlet.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::{Context, Entropy, Result};
use core_domain::port::{Outlet, OutletError, Store};
use core_domain::shared::OutboxMessage;
use core_domain::use_case::shared::{
    ClaimedMessage, MAX_HANDOVER_TIME, MessageOutcome, claim_messages, store_message_outcomes,
};

use crate::due_queue::{DueQueue, InProgress};
use crate::outbox_options::OutboxOptions;

/// Writes every message to the log, for installations without another receiver.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogOutlet;

#[async_trait]
impl Outlet for LogOutlet {
    async fn deliver(&self, message: &OutboxMessage) -> Result<(), OutletError> {
        tracing::info!(target: "core::outbox", id = %message.id, topic = message.topic, payload = %message.payload, "message");
        Ok(())
    }
}

/// The queue of messages for the outlet.
pub(crate) struct Relay {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) outlet: Arc<dyn Outlet>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) options: OutboxOptions,
}

#[async_trait]
impl DueQueue for Relay {
    type ClaimedRecord = ClaimedMessage;
    type Outcome = MessageOutcome;
    type Receiver = ();

    const NAME: &'static str = "outbox";
    const MAX_ATTEMPT_DURATION: Duration = MAX_HANDOVER_TIME;
    const MAX_BATCH: usize = 64;

    fn timeout(&self) -> Duration {
        self.options.timeout
    }

    fn concurrency(&self) -> u32 {
        self.options.concurrency
    }

    async fn claim(&self, in_progress: &InProgress<()>) -> Result<Vec<ClaimedMessage>> {
        let in_progress = in_progress.values().sum();
        let free = self.concurrency().saturating_sub(in_progress);
        claim_messages(self.store.as_ref(), free).await
    }

    fn receiver(_: &ClaimedMessage) {}

    async fn attempt(&self, claimed: &ClaimedMessage) -> MessageOutcome {
        let message = claimed.message();
        match self.outlet.deliver(message).await {
            Ok(()) => MessageOutcome::Delivered,
            Err(error) => {
                let (id, attempt) = (&message.id, message.attempts);
                tracing::info!(%id, attempt, %error, "a message could not be delivered and will be retried");
                MessageOutcome::Rescheduled
            }
        }
    }

    fn timed_out_outcome(&self, claimed: &ClaimedMessage, took: Duration) -> MessageOutcome {
        let (id, attempt) = (&claimed.message().id, claimed.message().attempts);
        tracing::warn!(%id, attempt, ?took, "the delivery of a message timed out and will be retried");
        MessageOutcome::Rescheduled
    }

    fn released_outcome() -> MessageOutcome {
        MessageOutcome::Released
    }

    const OUTCOMES: &'static [&'static str] = &["delivered", "delayed", "released"];

    fn outcome_label(outcome: &MessageOutcome) -> &'static str {
        match outcome {
            MessageOutcome::Delivered => "delivered",
            MessageOutcome::Rescheduled => "delayed",
            MessageOutcome::Released => "released",
        }
    }

    async fn store_outcomes(&self, attempts: &[(ClaimedMessage, MessageOutcome)]) -> Result<()> {
        let cx = Context::system(Arc::clone(&self.entropy));
        store_message_outcomes(&cx, self.store.as_ref(), attempts).await
    }
}

#[cfg(test)]
mod tests {
    //! The store's clock advances only when a test moves it; tokio's clock advances when every task waits.

    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use core_domain::kernel::{Clock, OutboxId, StoreError, Timestamp};
    use core_domain::port::{Mode, UnitOfWork, Within, transact};
    use core_domain::shared::OutboxQuery;
    use core_domain::testing::{ManualClock, RecordKey, SeededEntropy};
    use core_http::kernel::metrics::Metrics;
    use core_storage::memory::{MemoryConfig, open};
    use serde_json::json;
    use tokio::sync::Notify;
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::background_task::{BackgroundTask, GRACE};
    use crate::due_queue;

    /// An outlet that accepts every message, except for the topics `refused` and `hung`.
    #[derive(Debug, Default)]
    struct ScriptedOutlet(Mutex<Vec<(String, i64)>>);

    #[async_trait]
    impl Outlet for ScriptedOutlet {
        async fn deliver(&self, message: &OutboxMessage) -> Result<(), OutletError> {
            let topic = message.topic.clone();
            self.0.lock().unwrap().push((topic, message.attempts));
            match message.topic.as_str() {
                "refused" => Err(OutletError("not now".to_owned())),
                "hung" => std::future::pending().await,
                _ => Ok(()),
            }
        }
    }

    /// A store that refuses to write while its flag is set, and counts the units that write.
    #[derive(Debug)]
    struct Full(Arc<dyn Store>, AtomicBool, AtomicU32);

    #[async_trait]
    impl Store for Full {
        async fn begin(&self, mode: Mode) -> Result<Box<dyn UnitOfWork>, StoreError> {
            let is_read = matches!(mode, Mode::Auto | Mode::Read);
            if !is_read && self.1.load(Ordering::SeqCst) {
                return Err(StoreError::unavailable("the disk is full"));
            }
            self.2.fetch_add(u32::from(!is_read), Ordering::SeqCst);
            self.0.begin(mode).await
        }

        async fn back_off(&self, _: u32) {}
    }

    struct World {
        clock: Arc<ManualClock>,
        store: Arc<Full>,
        entropy: Arc<SeededEntropy>,
        outlet: Arc<ScriptedOutlet>,
        wake: Arc<Notify>,
    }

    impl World {
        async fn with(topics: &[&str]) -> Self {
            let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_000)));
            let store = open(MemoryConfig {
                clock: clock.clone(),
                cursor_key: [1; 32].into(),
            });
            let world = Self {
                clock,
                store: Arc::new(Full(store, AtomicBool::new(false), AtomicU32::new(0))),
                entropy: Arc::new(SeededEntropy::new(1)),
                outlet: Arc::default(),
                wake: Arc::default(),
            };
            for topic in topics {
                world.queue(topic).await;
            }
            world
        }

        async fn queue(&self, topic: &str) {
            let now = self.clock.now();
            let message = &OutboxMessage {
                id: OutboxId::generate(now, self.entropy.as_ref()),
                topic: topic.to_owned(),
                payload: json!({}),
                attempts: 0,
                run_at: now,
                created_at: now,
            };
            let queued = transact(self.store.as_ref(), |uow, _| {
                Box::pin(async move {
                    let repositories = uow.repositories(RecordKey::for_tests());
                    let messages = repositories.outbox_messages();
                    messages.insert(message.clone()).await?;
                    Ok(())
                })
            });
            queued.await.unwrap();
            self.clock.advance(Duration::from_millis(1));
        }

        fn start(&self, concurrency: u32) -> BackgroundTask {
            let relay = Relay {
                store: self.store.clone(),
                outlet: self.outlet.clone(),
                entropy: self.entropy.clone(),
                options: OutboxOptions {
                    concurrency,
                    ..OutboxOptions::default()
                },
            };
            due_queue::start(relay, Arc::clone(&self.wake), &Metrics::new())
        }

        /// Returns the topics and attempts of the messages that the outlet has got since the last call.
        fn heard(&self) -> Vec<(String, i64)> {
            std::mem::take(&mut *self.outlet.0.lock().unwrap())
        }

        async fn queued_messages(&self) -> Vec<OutboxMessage> {
            let mut uow = self.store.begin(Mode::Read).await.unwrap();
            let all = OutboxQuery::DueAt(Timestamp::from_seconds(4_000_000_000));
            let messages = uow.repositories(RecordKey::for_tests()).outbox_messages();
            let messages = messages.list(Within::Installation, &all, 100).await;
            messages
                .unwrap()
                .iter()
                .map(|stored| stored.edit())
                .collect()
        }
    }

    fn heard(topics: &[(&str, i64)]) -> Vec<(String, i64)> {
        let owned = |(topic, attempt): &(&str, i64)| ((*topic).to_owned(), *attempt);
        topics.iter().map(owned).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn messages_are_delivered_once_in_order_and_at_once_after_a_wake() {
        let world = World::with(&["first", "second", "third"]).await;
        let relay = world.start(1);
        sleep(Duration::from_millis(1)).await;
        let expected = [("first", 1), ("second", 1), ("third", 1)];
        assert_eq!(world.heard(), heard(&expected));
        sleep(Duration::from_millis(20)).await;
        world.queue("fourth").await;
        world.wake.notify_one();
        sleep(Duration::from_millis(1)).await;
        assert_eq!(world.heard(), heard(&[("fourth", 1)]));
        sleep(Duration::from_secs(120)).await;
        relay.stop().await;
        assert!(world.heard().is_empty() && world.queued_messages().await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn messages_queued_within_milliseconds_are_claimed_and_settled_together() {
        let world = World::with(&["a"; 8]).await;
        let units = || world.store.2.load(Ordering::SeqCst);
        let relay = world.start(8);
        sleep(Duration::from_millis(50)).await;
        assert_eq!((world.heard().len(), units()), (8, 8 + 2), "all at once");
        for _ in 0..8 {
            world.queue("b").await;
            world.wake.notify_one();
            sleep(Duration::from_millis(1)).await;
        }
        sleep(Duration::from_millis(50)).await;
        assert_eq!(world.heard().len(), 8);
        assert_eq!(
            units(),
            10 + 8 + 2 + 2,
            "the first one alone, then all others"
        );
        relay.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_message_delays_no_other_and_is_retried_after_a_pause() {
        let world = World::with(&["refused", "taken"]).await;
        let relay = world.start(1);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(world.heard(), heard(&[("refused", 1), ("taken", 1)]));
        for attempt in 2..=4 {
            sleep(Duration::from_secs(2)).await;
            assert!(world.heard().is_empty(), "not before the pause has ended");
            world.clock.advance(Duration::from_secs(300));
            sleep(Duration::from_secs(2)).await;
            assert_eq!(world.heard(), heard(&[("refused", attempt)]));
        }
        relay.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_hanging_outlet_occupies_one_slot_until_the_time_out() {
        let world = World::with(&["hung", "a", "b", "c"]).await;
        let relay = world.start(2);
        sleep(Duration::from_secs(1)).await;
        let mut first = world.heard();
        first.sort();
        assert_eq!(first, heard(&[("a", 1), ("b", 1), ("c", 1), ("hung", 1)]));
        sleep(Duration::from_secs(28)).await;
        let left = world.queued_messages().await;
        assert_eq!(
            left[0].run_at.since(world.clock.now()).as_secs(),
            120,
            "still claimed"
        );
        sleep(Duration::from_secs(2)).await;
        let left = world.queued_messages().await;
        let pause = left[0].run_at.since(world.clock.now());
        assert!(left[0].attempts == 1 && pause <= Duration::from_secs(2));
        relay.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_waits_five_seconds_for_a_hanging_outlet_and_releases_its_message() {
        let world = World::with(&["hung"]).await;
        let relay = world.start(2);
        sleep(Duration::from_secs(1)).await;
        let asked = Instant::now();
        relay.stop().await;
        assert_eq!(asked.elapsed(), GRACE);
        let left = world.queued_messages().await;
        assert_eq!((left[0].attempts, left[0].run_at), (0, world.clock.now()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_is_not_delivered_while_it_cannot_be_claimed() {
        let world = World::with(&["first"]).await;
        world.store.1.store(true, Ordering::SeqCst);
        let relay = world.start(2);
        sleep(Duration::from_secs(5)).await;
        assert!(
            world.heard().is_empty(),
            "a message that cannot be claimed is not delivered"
        );
        world.store.1.store(false, Ordering::SeqCst);
        sleep(Duration::from_secs(2)).await;
        relay.stop().await;
        assert_eq!(world.heard(), heard(&[("first", 1)]));
    }

    #[tokio::test(start_paused = true)]
    async fn the_message_of_a_crashed_relay_is_delivered_after_its_claim_has_expired() {
        let world = World::with(&["hung"]).await;
        let dying = world.start(2);
        sleep(Duration::from_secs(1)).await;
        drop(dying);
        assert_eq!(world.heard(), heard(&[("hung", 1)]));
        let next = world.start(2);
        sleep(Duration::from_secs(3)).await;
        assert!(world.heard().is_empty());
        world.clock.advance(Duration::from_secs(121));
        sleep(Duration::from_secs(3)).await;
        assert_eq!(world.heard(), heard(&[("hung", 2)]));
        next.stop().await;
    }
}
