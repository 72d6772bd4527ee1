//! Sends webhooks, some at a time, on tokio.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Cipher, Context, Entropy, WebhookId};
use core_domain::port::{Cause, LONGEST_SENDING, Store, WebhookSendError, WebhookSender};
use core_domain::use_case::shared::webhook::{
    ClaimedDelivery, DeliveryResult, DispatchLimits, claim_deliveries, settle_delivery,
};
use tokio::sync::{Notify, watch};
use tokio::task::{Id, JoinSet};
use tokio::time::Instant;

use crate::background_task::{BackgroundTask, grace_ended};

/// How often due messages are looked for when nobody calls.
const POLL: Duration = Duration::from_secs(1);

/// When a sender is given up that has limits of its own; before its message is claimed by others.
const GIVEN_UP_AFTER: Duration = LONGEST_SENDING.saturating_add(Duration::from_secs(5));

/// What the dispatcher works with.
#[derive(Clone)]
pub(crate) struct WebhookDispatcher {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) sender: Arc<dyn WebhookSender>,
    pub(crate) cipher: Cipher,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) wake: Arc<Notify>,
    pub(crate) limits: DispatchLimits,
}

/// The messages that are being sent, and to which webhook.
#[derive(Default)]
struct UnderWay {
    tasks: JoinSet<()>,
    webhooks: HashMap<Id, WebhookId>,
}

impl UnderWay {
    fn counts(&self) -> BTreeMap<WebhookId, u32> {
        let mut counts = BTreeMap::new();
        for webhook in self.webhooks.values() {
            *counts.entry(webhook.clone()).or_default() += 1;
        }
        counts
    }

    /// Waits until one has ended, and gives its place to others, and those of all that have ended meanwhile. Never returns
    /// when there are none.
    async fn ended(&mut self) {
        let Some(ended) = self.tasks.join_next_with_id().await else {
            return std::future::pending().await;
        };
        let mut ended = Some(ended);
        while let Some(one) = ended {
            // One that panicked has ended as well.
            let id = one.map_or_else(|error| error.id(), |(id, ())| id);
            self.webhooks.remove(&id);
            ended = self.tasks.try_join_next_with_id();
        }
    }
}

impl WebhookDispatcher {
    /// Starts on the current tokio runtime; asked to end, it lets what is under way end, for five seconds at the most. What a
    /// dispatcher that is cut off had under way comes again.
    pub(crate) fn start(self) -> BackgroundTask {
        BackgroundTask::start(|stopped| self.run(stopped))
    }

    async fn run(self, mut stopped: watch::Receiver<bool>) {
        let mut under_way = UnderWay::default();
        while !*stopped.borrow() {
            for claimed in self.claim(&under_way.counts()).await {
                let webhook = claimed.webhook_id().clone();
                let sending = self.clone().dispatch(claimed, stopped.clone());
                let task = under_way.tasks.spawn(sending);
                under_way.webhooks.insert(task.id(), webhook);
            }
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(POLL) => {}
                () = under_way.ended() => {}
                _ = stopped.wait_for(|stopped| *stopped) => {}
            }
        }
        while under_way.tasks.join_next().await.is_some() {}
    }

    async fn claim(&self, under_way: &BTreeMap<WebhookId, u32>) -> Vec<ClaimedDelivery> {
        let claimed = claim_deliveries(self.store.as_ref(), self.limits, under_way).await;
        claimed.unwrap_or_else(|error| {
            tracing::warn!(?error, "messages to webhooks could not be read");
            Vec::new()
        })
    }

    async fn dispatch(self, claimed: ClaimedDelivery, stopped: watch::Receiver<bool>) {
        let result = tokio::select! {
            result = self.sent(&claimed) => result,
            () = grace_ended(stopped) => DeliveryResult::Released,
        };
        let cx = Context::system(Arc::clone(&self.entropy));
        let settled = settle_delivery(&cx, self.store.as_ref(), &claimed, &result).await;
        if let Err(error) = settled {
            tracing::warn!(id = %claimed.id(), ?error, "what became of a webhook's message could not be written down");
        }
    }

    async fn sent(&self, claimed: &ClaimedDelivery) -> DeliveryResult {
        let (id, webhook) = (claimed.id(), claimed.webhook_id());
        let began = Instant::now();
        let answer = match claimed.request(&self.cipher) {
            Ok(request) => {
                let sending = tokio::time::timeout(GIVEN_UP_AFTER, self.sender.send(&request));
                sending.await.unwrap_or(Err(WebhookSendError::TimedOut))
            }
            // Another node may have the key.
            Err(error) => Err(WebhookSendError::Unavailable(Cause::new(error))),
        };
        let took = u32::try_from(began.elapsed().as_millis()).unwrap_or(u32::MAX);
        match &answer {
            Ok(answer) => {
                tracing::debug!(%id, %webhook, status = answer.status, took, "a webhook was sent")
            }
            Err(error) => {
                let cause = std::error::Error::source(error).map(ToString::to_string);
                tracing::info!(%id, %webhook, %error, cause, took, "a webhook could not be sent");
            }
        }
        DeliveryResult::Tried(answer, took)
    }
}

#[cfg(test)]
mod tests {
    //! How messages reach receivers. The store's clock stands still; tokio's goes on when nobody is busy.

    use std::sync::Mutex;

    use async_trait::async_trait;
    use core_domain::kernel::{Clock, Timestamp, WebhookDeliveryId};
    use core_domain::port::{Mode, WebhookAnswer, WebhookRequest, Within, transact};
    use core_domain::shared::{
        CreateWebhook, Webhook, WebhookDelivery, WebhookDeliveryQuery, WebhookDeliveryStatus,
        WebhookEventType, WebhookSecret, WebhookUrl, test_message,
    };
    use core_domain::testing::{ManualClock, RecordKey, SeededEntropy};
    use core_storage::memory::{MemoryConfig, open};
    use tokio::time::sleep;

    use super::*;

    /// Takes every message at once, but for those to a host that takes its time.
    #[derive(Debug, Default)]
    struct Scripted {
        heard: Mutex<Vec<String>>,
    }

    #[async_trait]
    impl WebhookSender for Scripted {
        async fn send(&self, request: &WebhookRequest) -> Result<WebhookAnswer, WebhookSendError> {
            let host = request.url.target().host.to_owned();
            let is_slow = host.starts_with("slow");
            self.heard.lock().unwrap().push(host);
            if is_slow {
                std::future::pending::<()>().await;
            }
            let body = String::new();
            Ok(WebhookAnswer {
                status: 204,
                retry_after: None,
                body,
            })
        }
    }

    struct World {
        clock: Arc<ManualClock>,
        dispatcher: WebhookDispatcher,
        sender: Arc<Scripted>,
    }

    impl World {
        fn new() -> Self {
            let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
            let (entropy, sender) = (Arc::new(SeededEntropy::new(1)), Arc::<Scripted>::default());
            let store = open(MemoryConfig {
                clock: clock.clone(),
                cursor_key: [1; 32].into(),
            });
            let dispatcher = WebhookDispatcher {
                store,
                sender: sender.clone(),
                cipher: Cipher::new([1; 32], entropy.clone()),
                entropy,
                wake: Arc::default(),
                limits: crate::WebhookOptions::default().limits(),
            };
            Self {
                clock,
                dispatcher,
                sender,
            }
        }

        /// A webhook of the installation with so many messages.
        async fn queue(&self, host: &str, messages: usize) {
            let (now, dispatcher) = (self.clock.now(), &self.dispatcher);
            let entropy = dispatcher.entropy.as_ref();
            let id = WebhookId::generate(now, entropy);
            let secret = WebhookSecret::generate(entropy);
            let sealed = dispatcher
                .cipher
                .seal(id.as_str(), secret.expose())
                .unwrap();
            let command = CreateWebhook {
                url: WebhookUrl::parse(&format!("https://{host}/")).unwrap(),
                description: None,
                event_types: vec![WebhookEventType::parse("*").unwrap()],
            };
            let webhook = &Webhook::create(id, None, command, sealed, now);
            let queued = transact(dispatcher.store.as_ref(), |uow, _| {
                Box::pin(async move {
                    let repositories = uow.repositories(RecordKey::for_tests());
                    repositories.webhooks().insert(webhook.clone()).await?;
                    for _ in 0..messages {
                        let id = WebhookDeliveryId::generate(now, entropy);
                        let message = test_message(webhook, now);
                        let message = WebhookDelivery::queue(id, webhook, None, message, now);
                        repositories.webhook_deliveries().insert(message).await?;
                    }
                    Ok(())
                })
            });
            queued.await.unwrap();
            self.clock.advance(Duration::from_millis(1));
        }

        fn heard(&self) -> Vec<String> {
            let mut heard = std::mem::take(&mut *self.sender.heard.lock().unwrap());
            heard.sort();
            heard
        }

        /// The messages that can be claimed at once.
        async fn due(&self) -> usize {
            let mut uow = self.dispatcher.store.begin(Mode::Read).await.unwrap();
            let due = WebhookDeliveryQuery::DueAt {
                now: self.clock.now(),
                except: Vec::new(),
            };
            let messages = uow
                .repositories(RecordKey::for_tests())
                .webhook_deliveries();
            let due = messages
                .list(Within::Installation, &due, 100)
                .await
                .unwrap();
            assert!(
                due.iter()
                    .all(|message| message.status == WebhookDeliveryStatus::Pending)
            );
            due.len()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_is_sent_as_soon_as_somebody_calls_and_once() {
        let world = World::new();
        let dispatcher = world.dispatcher.clone().start();
        sleep(Duration::from_millis(1)).await;
        world.queue("a.test", 3).await;
        let before = Instant::now();
        world.dispatcher.wake.notify_one();
        while world.sender.heard.lock().unwrap().len() < 3 {
            tokio::task::yield_now().await;
        }
        assert_eq!(Instant::now(), before, "not by looking now and then");
        sleep(Duration::from_secs(120)).await;
        assert_eq!(world.heard(), ["a.test"; 3]);
        dispatcher.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn receivers_that_are_slow_take_four_places_each_and_hold_up_no_other() {
        let world = World::new();
        world.queue("slow.test", 30).await;
        world.queue("a.test", 20).await;
        let dispatcher = world.dispatcher.clone().start();
        sleep(Duration::from_secs(10)).await;
        let heard = world.heard();
        let to = |host: &str| heard.iter().filter(|heard| *heard == host).count();
        assert_eq!((to("slow.test"), to("a.test")), (4, 20));
        // A sender without a limit of its own is given up, and its place goes to the next message.
        sleep(Duration::from_secs(30)).await;
        assert_eq!(world.heard(), ["slow.test"; 4]);
        dispatcher.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_not_sent_to_the_end_is_given_back_when_the_dispatcher_ends() {
        let world = World::new();
        world.queue("slow.test", 2).await;
        let dispatcher = world.dispatcher.clone().start();
        sleep(Duration::from_secs(2)).await;
        assert_eq!((world.heard().len(), world.due().await), (2, 0));
        let before = Instant::now();
        dispatcher.stop().await;
        assert!(before.elapsed() < Duration::from_secs(6));
        assert_eq!(world.due().await, 2);
    }
}
