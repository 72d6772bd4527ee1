//! Passes queued mails to the mailer.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use core_domain::kernel::{Cipher, Context, Entropy, Result};
use core_domain::port::{Mail, MailError, Mailer, Store};
use core_domain::use_case::shared::{
    ClaimedMail, MAX_HANDOVER_TIME, MailOutcome, claim_mails, store_mail_outcome,
};

use crate::due_queue::{DueQueue, InProgress};
use crate::mail_options::MailOptions;

/// The queue of mails.
pub(crate) struct MailRelay {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) mailer: Arc<dyn Mailer>,
    pub(crate) cipher: Cipher,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) options: MailOptions,
}

#[async_trait]
impl DueQueue for MailRelay {
    type ClaimedRecord = ClaimedMail;
    type Outcome = MailOutcome;
    type Receiver = ();

    const NAME: &'static str = "mails";
    const MAX_ATTEMPT_DURATION: Duration = MAX_HANDOVER_TIME;
    const MAX_BATCH: usize = 1;

    fn timeout(&self) -> Duration {
        self.options.timeout
    }

    fn concurrency(&self) -> u32 {
        self.options.concurrency
    }

    async fn claim(&self, in_progress: &InProgress<()>) -> Result<Vec<ClaimedMail>> {
        let in_progress = in_progress.values().sum();
        let free = self.concurrency().saturating_sub(in_progress);
        claim_mails(self.store.as_ref(), free).await
    }

    fn receiver(_: &ClaimedMail) {}

    async fn attempt(&self, claimed: &ClaimedMail) -> MailOutcome {
        self.attempt_delivery(claimed).await
    }

    fn timed_out_outcome(&self, claimed: &ClaimedMail, took: Duration) -> MailOutcome {
        let (id, attempt) = (claimed.id(), claimed.attempt());
        let to = claimed.mail(&self.cipher).ok().flatten();
        let to = to.as_ref().map(|mail| mail.to.as_str());
        tracing::warn!(%id, to, attempt, ?took, "sending a mail timed out and will be retried");
        MailOutcome::PutOff
    }

    fn released_outcome() -> MailOutcome {
        MailOutcome::Released
    }

    const OUTCOMES: &'static [&'static str] =
        &["delivered", "delayed", "refused", "expired", "released"];

    fn outcome_label(outcome: &MailOutcome) -> &'static str {
        match outcome {
            MailOutcome::Sent => "delivered",
            MailOutcome::PutOff => "delayed",
            MailOutcome::Refused(_) => "refused",
            MailOutcome::Expired(_) => "expired",
            MailOutcome::Released => "released",
        }
    }

    async fn store_outcomes(&self, attempts: &[(ClaimedMail, MailOutcome)]) -> Result<()> {
        let cx = Context::system(Arc::clone(&self.entropy));
        for (claimed, fate) in attempts {
            store_mail_outcome(&cx, self.store.as_ref(), claimed, fate).await?;
        }
        Ok(())
    }
}

impl MailRelay {
    async fn attempt_delivery(&self, claimed: &ClaimedMail) -> MailOutcome {
        let id = claimed.id();
        let mail = match claimed.mail(&self.cipher) {
            Ok(None) => return MailOutcome::Sent,
            Ok(Some(mail)) => Ok(mail),
            Err(error) => Err(error),
        };
        if claimed.has_expired() {
            let to = mail.ok().map(|mail| mail.to);
            tracing::warn!(%id, to = to.as_ref().map(AsRef::<str>::as_ref), "a mail has expired before it could be sent, and is dropped");
            return MailOutcome::Expired(to);
        }
        match mail {
            Ok(mail) => self.send(claimed, mail).await,
            Err(error) => {
                // Another node may have the key that decrypts it.
                tracing::warn!(%id, ?error, "a queued mail could not be decrypted and will be retried");
                MailOutcome::PutOff
            }
        }
    }

    async fn send(&self, claimed: &ClaimedMail, mail: Mail) -> MailOutcome {
        let (id, to, attempt) = (claimed.id(), &mail.to, claimed.attempt());
        match self.mailer.send(id, &mail).await {
            Ok(()) => MailOutcome::Sent,
            Err(MailError::Permanent(cause)) => {
                tracing::warn!(%id, %to, attempt, %cause, "a mail was rejected and is dropped");
                MailOutcome::Refused(mail.to)
            }
            Err(MailError::Transient(cause)) => {
                tracing::info!(%id, %to, attempt, %cause, "a mail could not be sent and will be retried");
                MailOutcome::PutOff
            }
            Err(error) => {
                tracing::warn!(%id, %to, attempt, ?error, "a mail could not be sent and will be retried");
                MailOutcome::PutOff
            }
        }
    }
}

#[cfg(test)]
mod tests {
    //! Outcomes of queued mails. The store's clock advances only when a test moves it; tokio's clock advances when
    //! every task waits.

    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use core_domain::kernel::{Clock, Email, OutboxId, Timestamp};
    use core_domain::port::{Cause, Repositories, Within, transact};
    use core_domain::shared::{AuditEntry, AuditQuery, MAIL_TOPIC, OutboxMessage, OutboxQuery};
    use core_domain::testing::{ManualClock, RecordKey, SeededEntropy};
    use core_http::kernel::metrics::Metrics;
    use core_storage::memory::{MemoryConfig, open};
    use serde_json::{Value, json};
    use tokio::sync::Notify;
    use tokio::time::{Instant, sleep};

    use super::*;
    use crate::background_task::{BackgroundTask, GRACE};
    use crate::due_queue;

    const SECRET: &str = "https://core.test/verify?token=Abc123";

    /// How the mailer responds to a recipient.
    #[derive(Clone, Copy, Debug)]
    enum Answer {
        Takes,
        Later,
        Never,
        Silence,
    }

    /// A mailer that accepts every mail, except for recipients with a scripted response.
    #[derive(Debug, Default)]
    struct ScriptedMailer {
        answers: Mutex<BTreeMap<String, Answer>>,
        heard: Mutex<Vec<(String, OutboxId)>>,
    }

    #[async_trait]
    impl Mailer for ScriptedMailer {
        async fn send(&self, id: &OutboxId, mail: &Mail) -> Result<(), MailError> {
            assert_eq!(mail.text, SECRET);
            let to = mail.to.to_string();
            let answer = self.answers.lock().unwrap().get(&to).copied();
            let heard = (to.trim_end_matches("@test.org").to_owned(), id.clone());
            self.heard.lock().unwrap().push(heard);
            let cause = || Cause::new("the server says no");
            match answer.unwrap_or(Answer::Takes) {
                Answer::Takes => Ok(()),
                Answer::Later => Err(MailError::Transient(cause())),
                Answer::Never => Err(MailError::Permanent(cause())),
                Answer::Silence => std::future::pending().await,
            }
        }
    }

    struct World {
        clock: Arc<ManualClock>,
        store: Arc<dyn Store>,
        entropy: Arc<SeededEntropy>,
        mailer: Arc<ScriptedMailer>,
        cipher: Cipher,
        wake: Arc<Notify>,
    }

    fn repositories(uow: &mut dyn core_domain::port::UnitOfWork) -> &mut dyn Repositories {
        uow.repositories(RecordKey::for_tests())
    }

    impl World {
        fn new() -> Self {
            let clock = Arc::new(ManualClock::at(Timestamp::from_seconds(1_800_000_000)));
            let entropy = Arc::new(SeededEntropy::new(1));
            Self {
                store: open(MemoryConfig {
                    clock: clock.clone(),
                    cursor_key: [1; 32].into(),
                }),
                clock,
                cipher: Cipher::new([1; 32], entropy.clone()),
                entropy,
                mailer: Arc::default(),
                wake: Arc::default(),
            }
        }

        fn answers(&self, name: &str, answer: Answer) {
            let mut answers = self.mailer.answers.lock().unwrap();
            answers.insert(format!("{name}@test.org"), answer);
        }

        /// Starts a relay that sends `concurrency` mails at the same time.
        fn start(&self, concurrency: u32) -> BackgroundTask {
            let relay = MailRelay {
                store: Arc::clone(&self.store),
                mailer: self.mailer.clone(),
                cipher: self.cipher.clone(),
                entropy: self.entropy.clone(),
                options: MailOptions {
                    concurrency,
                    ..MailOptions::default()
                },
            };
            due_queue::start(relay, Arc::clone(&self.wake), &Metrics::new())
        }

        /// Queues one mail to each name.
        async fn queue(&self, names: &[&str]) {
            self.queue_all(names, false).await;
        }

        async fn queue_all(&self, names: &[&str], is_decoy: bool) {
            for name in names {
                let mail = Mail {
                    to: Email::parse(&format!("{name}@test.org")).unwrap(),
                    subject: "Verify your address".to_owned(),
                    text: SECRET.to_owned(),
                    html: SECRET.to_owned(),
                };
                let now = self.clock.now();
                let id = OutboxId::generate(now, self.entropy.as_ref());
                let mut text = json!(mail);
                text["is_decoy"] = json!(is_decoy);
                let text = text.to_string();
                let sealed = self.cipher.seal(id.as_str(), &text).unwrap();
                let message = &OutboxMessage {
                    id,
                    topic: MAIL_TOPIC.to_owned(),
                    payload: json!({ "sealed": sealed }),
                    attempts: 0,
                    run_at: now,
                    created_at: now,
                };
                let queued = transact(self.store.as_ref(), |uow, _| {
                    Box::pin(async move {
                        let messages = repositories(uow).outbox_messages();
                        messages.insert(message.clone()).await?;
                        Ok(())
                    })
                });
                queued.await.unwrap();
                // The mails become due one after the other.
                self.clock.advance(Duration::from_millis(1));
            }
        }

        /// Returns the names that the mailer got mails for, sorted, because concurrent attempts have no order.
        fn heard(&self) -> Vec<String> {
            let heard = std::mem::take(&mut *self.mailer.heard.lock().unwrap());
            let mut heard: Vec<String> = heard.into_iter().map(|(name, _)| name).collect();
            heard.sort();
            heard
        }

        /// The messages that are still queued.
        async fn queued_messages(&self) -> Vec<OutboxMessage> {
            let mut uow = self
                .store
                .begin(core_domain::port::Mode::Read)
                .await
                .unwrap();
            let all = OutboxQuery::MailDueAt(Timestamp::from_seconds(4_000_000_000));
            let messages = repositories(uow.as_mut()).outbox_messages();
            let messages = messages.list(Within::Installation, &all, 100).await;
            messages
                .unwrap()
                .iter()
                .map(|message| (**message).clone())
                .collect()
        }

        /// The actions and details of the audit entries.
        async fn audit(&self) -> Vec<(String, Value)> {
            let mut uow = self
                .store
                .begin(core_domain::port::Mode::Read)
                .await
                .unwrap();
            let entries = repositories(uow.as_mut()).audit_entries();
            let query = AuditQuery::default();
            let entries = entries
                .list(Within::Installation, &query, 100)
                .await
                .unwrap();
            let told = |entry: &AuditEntry| {
                assert_eq!(
                    (&*entry.actor_type, &*entry.entity_type),
                    ("system", "mail")
                );
                let details = entry.after.as_ref().map(|details| json!(details));
                (entry.action.clone(), details.unwrap_or_default())
            };
            entries.iter().map(|entry| told(entry)).collect()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_decoy_is_dropped_without_being_sent() {
        let world = World::new();
        world.queue_all(&["nobody"], true).await;
        world.queue(&["ada"]).await;
        let relay = world.start(8);
        sleep(Duration::from_secs(1)).await;
        relay.stop().await;
        assert_eq!(world.heard(), ["ada"]);
        assert!(world.queued_messages().await.is_empty() && world.audit().await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_mail_is_sent_once_and_at_once_after_a_wake() {
        let world = World::new();
        world.queue(&["ada", "bob"]).await;
        let relay = world.start(8);
        sleep(Duration::from_millis(1)).await;
        assert_eq!(world.heard(), ["ada", "bob"]);
        sleep(Duration::from_millis(20)).await;
        let before = Instant::now();
        world.queue(&["eve"]).await;
        world.wake.notify_one();
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(
            (world.heard(), before),
            (vec!["eve".to_owned()], Instant::now())
        );
        sleep(Duration::from_secs(10)).await;
        relay.stop().await;
        assert!(world.heard().is_empty() && world.queued_messages().await.is_empty());
        assert!(world.audit().await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_mail_that_fails_transiently_is_retried_after_growing_pauses() {
        let world = World::new();
        world.answers("ada", Answer::Later);
        world.queue(&["ada", "bob"]).await;
        let relay = world.start(8);
        for attempt in 1..=12 {
            sleep(Duration::from_secs(2)).await;
            let mut expected = vec!["ada"];
            if attempt == 1 {
                expected.push("bob");
            }
            assert_eq!(world.heard(), expected);
            sleep(Duration::from_secs(2)).await;
            assert!(world.heard().is_empty(), "not before the pause has ended");
            let left = &world.queued_messages().await[0];
            assert_eq!(left.attempts, attempt);
            let pause = left.run_at.since(world.clock.now());
            let longest = Duration::from_secs(2_u64.pow(attempt.min(9) as u32).min(300));
            assert!(
                pause >= longest / 2 && pause <= longest,
                "{attempt}: {pause:?}"
            );
            world.clock.advance(pause);
        }
        world.answers("ada", Answer::Takes);
        sleep(Duration::from_secs(2)).await;
        relay.stop().await;
        assert_eq!(world.heard(), ["ada"]);
        assert!(world.queued_messages().await.is_empty() && world.audit().await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejected_mail_is_dropped_with_an_audit_entry_without_its_text() {
        let world = World::new();
        world.answers("ada", Answer::Never);
        world.queue(&["ada"]).await;
        let relay = world.start(8);
        sleep(Duration::from_secs(1)).await;
        world.clock.advance(Duration::from_secs(600));
        sleep(Duration::from_secs(3)).await;
        relay.stop().await;
        assert_eq!(world.heard(), ["ada"]);
        assert!(world.queued_messages().await.is_empty());
        let details = json!({ "to": "ada@test.org", "attempts": 1 });
        assert_eq!(world.audit().await, [("mail.refused".to_owned(), details)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_mail_that_cannot_be_sent_for_two_days_expires_with_an_audit_entry() {
        let world = World::new();
        world.answers("ada", Answer::Later);
        world.queue(&["ada"]).await;
        let relay = world.start(8);
        sleep(Duration::from_secs(2)).await;
        world.clock.advance(Duration::from_secs(48 * 3_600 - 60));
        sleep(Duration::from_secs(2)).await;
        assert_eq!(world.heard(), ["ada", "ada"]);
        world.clock.advance(Duration::from_secs(120));
        sleep(Duration::from_secs(2)).await;
        relay.stop().await;
        assert!(world.heard().is_empty() && world.queued_messages().await.is_empty());
        let details = json!({ "to": "ada@test.org", "attempts": 2 });
        assert_eq!(world.audit().await, [("mail.expired".to_owned(), details)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_server_blocks_no_more_mails_than_the_concurrency_limit() {
        let world = World::new();
        for silent in ["s1", "s2"] {
            world.answers(silent, Answer::Silence);
        }
        world.queue(&["s1", "a", "b", "c", "s2", "d", "e"]).await;
        let relay = world.start(2);
        sleep(Duration::from_secs(1)).await;
        assert_eq!(world.heard(), ["a", "b", "c", "s1", "s2"]);
        sleep(Duration::from_secs(28)).await;
        assert!(world.heard().is_empty(), "both places are taken");
        sleep(Duration::from_secs(3)).await;
        assert_eq!(world.heard(), ["d", "e"]);
        let left = world.queued_messages().await;
        let attempts: Vec<i64> = left.iter().map(|message| message.attempts).collect();
        assert_eq!(attempts, [1, 1], "both attempts were cut off");
        drop(relay);
    }

    #[tokio::test(start_paused = true)]
    async fn a_mail_in_progress_is_released_at_a_stop_without_counting_the_attempt() {
        let world = World::new();
        world.answers("ada", Answer::Silence);
        world.queue(&["ada"]).await;
        let relay = world.start(2);
        sleep(Duration::from_secs(1)).await;
        let asked = Instant::now();
        relay.stop().await;
        assert_eq!(asked.elapsed(), GRACE);
        let left = world.queued_messages().await;
        assert_eq!((left[0].attempts, left[0].run_at), (0, world.clock.now()));
        world.answers("ada", Answer::Takes);
        let next = world.start(2);
        sleep(Duration::from_millis(1)).await;
        next.stop().await;
        assert_eq!(world.heard(), ["ada", "ada"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_mail_of_a_crashed_relay_is_sent_again_with_the_same_id() {
        let world = World::new();
        world.answers("ada", Answer::Silence);
        world.queue(&["ada"]).await;
        let dying = world.start(2);
        sleep(Duration::from_secs(1)).await;
        drop(dying);
        world.answers("ada", Answer::Takes);
        let next = world.start(2);
        sleep(Duration::from_secs(3)).await;
        assert_eq!(world.mailer.heard.lock().unwrap().len(), 1);
        world.clock.advance(Duration::from_secs(121));
        sleep(Duration::from_secs(3)).await;
        next.stop().await;
        let heard = world.mailer.heard.lock().unwrap().clone();
        assert_eq!(heard.len(), 2);
        assert_eq!(heard[0], heard[1]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_mail_that_was_encrypted_with_another_key_stays_queued() {
        let mut world = World::new();
        world.queue(&["ada"]).await;
        let key = world.cipher.clone();
        world.cipher = Cipher::new([2; 32], world.entropy.clone());
        let relay = world.start(2);
        sleep(Duration::from_secs(2)).await;
        relay.stop().await;
        assert_eq!(world.queued_messages().await[0].attempts, 1);
        world.cipher = key;
        world.clock.advance(Duration::from_secs(2));
        let relay = world.start(2);
        sleep(Duration::from_secs(2)).await;
        relay.stop().await;
        assert_eq!(world.heard(), ["ada"]);
    }
}
