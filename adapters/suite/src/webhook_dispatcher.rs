//! Sends webhooks.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::{Cipher, Context, Entropy, Result, WebhookId};
use core_domain::port::{
    Cause, MAX_SEND_DURATION, Store, WebhookResponse, WebhookSendError, WebhookSender,
};
use core_domain::use_case::shared::webhook::{
    ClaimedDelivery, DeliveryResult, DispatchLimits, claim_deliveries, store_delivery_result,
};
use tokio::time::Instant;

use crate::due_queue::{DueQueue, InProgress};

/// The queue of messages to webhooks.
#[derive(Clone)]
pub(crate) struct WebhookDispatcher {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) sender: Arc<dyn WebhookSender>,
    pub(crate) cipher: Cipher,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) limits: DispatchLimits,
}

#[async_trait]
impl DueQueue for WebhookDispatcher {
    type ClaimedRecord = ClaimedDelivery;
    type Outcome = DeliveryResult;
    type Receiver = WebhookId;

    const NAME: &'static str = "webhooks";
    const MAX_ATTEMPT_DURATION: Duration = MAX_SEND_DURATION;
    const MAX_BATCH: usize = 1;

    /// Returns the maximum. Senders have their own, shorter time-out.
    fn timeout(&self) -> Duration {
        MAX_SEND_DURATION
    }

    fn concurrency(&self) -> u32 {
        self.limits.concurrency
    }

    async fn claim(&self, in_progress: &InProgress<WebhookId>) -> Result<Vec<ClaimedDelivery>> {
        claim_deliveries(self.store.as_ref(), self.limits, in_progress).await
    }

    fn receiver(claimed: &ClaimedDelivery) -> WebhookId {
        claimed.webhook_id().clone()
    }

    async fn attempt(&self, claimed: &ClaimedDelivery) -> DeliveryResult {
        let begun = Instant::now();
        let answer = match claimed.request(&self.cipher) {
            Ok(request) => self.sender.send(&request).await,
            // Another node may have the key that decrypts the webhook's secret.
            Err(error) => Err(WebhookSendError::Unavailable(Cause::new(error))),
        };
        log_attempt(claimed, answer, begun.elapsed())
    }

    fn timed_out_outcome(&self, claimed: &ClaimedDelivery, took: Duration) -> DeliveryResult {
        log_attempt(claimed, Err(WebhookSendError::TimedOut), took)
    }

    fn released_outcome() -> DeliveryResult {
        DeliveryResult::Released
    }

    const OUTCOMES: &'static [&'static str] = &["delivered", "failed", "released"];

    fn outcome_label(outcome: &DeliveryResult) -> &'static str {
        match outcome {
            DeliveryResult::Tried(Ok(response), _) if response.is_success() => "delivered",
            DeliveryResult::Tried(..) => "failed",
            DeliveryResult::Released => "released",
        }
    }

    async fn store_outcomes(&self, attempts: &[(ClaimedDelivery, DeliveryResult)]) -> Result<()> {
        let cx = Context::system(Arc::clone(&self.entropy));
        for (claimed, result) in attempts {
            store_delivery_result(&cx, self.store.as_ref(), claimed, result).await?;
        }
        Ok(())
    }
}

/// Logs an attempt, and returns its outcome.
fn log_attempt(
    claimed: &ClaimedDelivery,
    answer: std::result::Result<WebhookResponse, WebhookSendError>,
    took: Duration,
) -> DeliveryResult {
    let (id, webhook) = (claimed.id(), claimed.webhook_id());
    let took = u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
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

#[cfg(test)]
mod tests {
    //! Delivery to receivers. The store's clock advances only when a test moves it; tokio's clock advances when every
    //! task waits.

    use std::sync::Mutex;

    use core_domain::kernel::{Clock, Timestamp, WebhookDeliveryId};
    use core_domain::port::{Mode, WebhookRequest, WebhookResponse, Within, transact};
    use core_domain::shared::{
        CreateWebhook, Webhook, WebhookDelivery, WebhookDeliveryQuery, WebhookDeliveryStatus,
        WebhookEventType, WebhookSecret, WebhookUrl, test_message,
    };
    use core_domain::testing::{ManualClock, RecordKey, SeededEntropy};
    use core_http::kernel::metrics::Metrics;
    use core_storage::memory::{MemoryConfig, open};
    use tokio::sync::Notify;
    use tokio::time::sleep;

    use super::*;
    use crate::background_task::BackgroundTask;
    use crate::due_queue;

    /// A sender that delivers every message at once, except to hosts that start with `slow`, where it hangs.
    #[derive(Debug, Default)]
    struct ScriptedSender {
        heard: Mutex<Vec<String>>,
    }

    #[async_trait]
    impl WebhookSender for ScriptedSender {
        async fn send(
            &self,
            request: &WebhookRequest,
        ) -> Result<WebhookResponse, WebhookSendError> {
            let host = request.url.target().host.to_owned();
            let is_slow = host.starts_with("slow");
            self.heard.lock().unwrap().push(host);
            if is_slow {
                std::future::pending::<()>().await;
            }
            let body = String::new();
            Ok(WebhookResponse {
                status: 204,
                retry_after: None,
                body,
            })
        }
    }

    struct World {
        clock: Arc<ManualClock>,
        dispatcher: WebhookDispatcher,
        wake: Arc<Notify>,
        sender: Arc<ScriptedSender>,
    }

    impl World {
        fn new() -> Self {
            let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
            let (entropy, sender) = (
                Arc::new(SeededEntropy::new(1)),
                Arc::<ScriptedSender>::default(),
            );
            let store = open(MemoryConfig {
                clock: clock.clone(),
                cursor_key: [1; 32].into(),
            });
            let dispatcher = WebhookDispatcher {
                store,
                sender: sender.clone(),
                cipher: Cipher::new([1; 32], entropy.clone()),
                entropy,
                limits: crate::WebhookOptions::default().limits(),
            };
            Self {
                clock,
                dispatcher,
                wake: Arc::default(),
                sender,
            }
        }

        fn start(&self) -> BackgroundTask {
            due_queue::start(
                self.dispatcher.clone(),
                Arc::clone(&self.wake),
                &Metrics::new(),
            )
        }

        /// Creates a webhook of the installation with queued messages.
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
                        let (event_type, payload) = test_message(webhook, now);
                        let message =
                            WebhookDelivery::queue(id, webhook, None, event_type, payload, now);
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

        /// The number of messages that can be claimed now.
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
    async fn a_message_is_sent_once_and_at_once_after_a_wake() {
        let world = World::new();
        let dispatcher = world.start();
        sleep(Duration::from_millis(1)).await;
        world.queue("a.test", 3).await;
        let before = Instant::now();
        world.wake.notify_one();
        while world.sender.heard.lock().unwrap().len() < 3 {
            tokio::task::yield_now().await;
        }
        assert_eq!(Instant::now(), before, "not by looking now and then");
        sleep(Duration::from_secs(120)).await;
        assert_eq!(world.heard(), ["a.test"; 3]);
        dispatcher.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_receiver_occupies_four_slots_and_delays_no_other() {
        let world = World::new();
        world.queue("slow.test", 30).await;
        world.queue("a.test", 20).await;
        let dispatcher = world.start();
        sleep(Duration::from_secs(10)).await;
        let heard = world.heard();
        let to = |host: &str| heard.iter().filter(|heard| *heard == host).count();
        assert_eq!((to("slow.test"), to("a.test")), (4, 20));
        // An attempt of a sender without its own time-out is cut off, and its slot goes to the next message.
        sleep(Duration::from_secs(30)).await;
        assert_eq!(world.heard(), ["slow.test"; 4]);
        dispatcher.stop().await;
    }

    #[tokio::test(start_paused = true)]
    async fn unfinished_messages_are_released_when_the_dispatcher_stops() {
        let world = World::new();
        world.queue("slow.test", 2).await;
        let dispatcher = world.start();
        sleep(Duration::from_secs(2)).await;
        assert_eq!((world.heard().len(), world.due().await), (2, 0));
        let before = Instant::now();
        dispatcher.stop().await;
        assert!(before.elapsed() < Duration::from_secs(6));
        assert_eq!(world.due().await, 2);
    }
}
