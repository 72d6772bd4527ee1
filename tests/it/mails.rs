//! Claims and outcomes of mails in the outbox, on every store.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use core_domain::kernel::{Cipher, Clock, Context, Email, OutboxId, Timestamp};
use core_domain::port::{Mail, Mode, Store, Within, transact};
use core_domain::shared::{AuditQuery, MAIL_TOPIC, OutboxMessage, OutboxQuery};
use core_domain::testing::{ManualClock, RecordKey, SeededEntropy};
use core_domain::use_case::shared::{
    ClaimedMail, ClaimedMessage, MailOutcome, MessageOutcome, claim_mails, claim_messages,
    store_mail_outcome, store_message_outcomes,
};
use core_testkit::manual_clock;
use futures_util::future::join_all;
use serde_json::json;
use tokio::task::yield_now;

use crate::world::Backend;

struct Outbox {
    clock: Arc<ManualClock>,
    store: Arc<dyn Store>,
    entropy: Arc<SeededEntropy>,
    cipher: Cipher,
    _resources: Box<dyn std::any::Any + Send + Sync>,
}

impl Outbox {
    async fn on(backend: Backend) -> Self {
        let clock = manual_clock();
        let opened = backend.open(clock.clone()).await;
        let entropy = Arc::new(SeededEntropy::new(1));
        Self {
            clock,
            store: opened.store,
            cipher: Cipher::new([1; 32], entropy.clone()),
            entropy,
            _resources: opened.resources,
        }
    }

    /// Queues messages of a topic, each a millisecond after the previous one. Mails are encrypted.
    async fn queue(&self, topic: &str, count: usize) -> Vec<OutboxId> {
        let mut ids = Vec::new();
        for n in 0..count {
            let now = self.clock.now();
            let id = OutboxId::generate(now, self.entropy.as_ref());
            let mail = Mail {
                to: Email::parse(&format!("p{n}@example.org")).unwrap(),
                subject: "Hello".to_owned(),
                text: "the secret".to_owned(),
                html: String::new(),
            };
            let text = serde_json::to_string(&mail).unwrap();
            let sealed = self.cipher.seal(id.as_str(), &text).unwrap();
            let message = &OutboxMessage {
                id: id.clone(),
                topic: topic.to_owned(),
                payload: json!({ "sealed": sealed }),
                attempts: 0,
                run_at: now,
                created_at: now,
            };
            let queued = transact(self.store.as_ref(), |uow, _| {
                Box::pin(async move {
                    let messages = uow.repositories(RecordKey::for_tests()).outbox_messages();
                    messages.insert(message.clone()).await?;
                    Ok(())
                })
            });
            queued.await.unwrap();
            ids.push(id);
            self.clock.advance(Duration::from_millis(1));
        }
        ids
    }

    async fn claim(&self, limit: u32) -> Vec<ClaimedMail> {
        claim_mails(self.store.as_ref(), limit).await.unwrap()
    }

    async fn store_outcome(&self, claimed: &ClaimedMail, fate: MailOutcome) {
        let cx = Context::system(self.entropy.clone());
        let settled = store_mail_outcome(&cx, self.store.as_ref(), claimed, &fate).await;
        settled.unwrap();
    }

    /// All mails that are still queued.
    async fn queued_mails(&self) -> Vec<OutboxMessage> {
        let mut uow = self.store.begin(Mode::Read).await.unwrap();
        let messages = uow.repositories(RecordKey::for_tests()).outbox_messages();
        let all = OutboxQuery::MailDueAt(Timestamp::from_seconds(4_000_000_000));
        let left = messages.list(Within::Installation, &all, 1_000).await;
        let left = left.unwrap().iter().map(|message| message.edit()).collect();
        uow.rollback().await;
        left
    }

    async fn audit_count(&self, action: &str) -> usize {
        let mut uow = self.store.begin(Mode::Read).await.unwrap();
        let entries = uow.repositories(RecordKey::for_tests()).audit_entries();
        let query = AuditQuery {
            action: Some(action.to_owned()),
            ..AuditQuery::default()
        };
        let count = entries.count(Within::Installation, &query).await.unwrap();
        uow.rollback().await;
        usize::try_from(count).unwrap()
    }
}

fn ids(claimed: &[ClaimedMail]) -> Vec<OutboxId> {
    claimed.iter().map(|mail| mail.id().clone()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mails_are_claimed_oldest_first_and_not_passed_to_the_outlet() {
    for backend in Backend::ALL {
        let outbox = Outbox::on(backend).await;
        let mails = outbox.queue(MAIL_TOPIC, 3).await;
        outbox.queue("platform.status", 2).await;
        assert!(outbox.claim(0).await.is_empty());
        let first = outbox.claim(2).await;
        assert_eq!(ids(&first), mails[..2], "{backend:?}");
        let told = first[0].mail(&outbox.cipher).unwrap().unwrap();
        assert_eq!(
            (told.to.as_str(), &*told.text),
            ("p0@example.org", "the secret")
        );
        let messages = claim_messages(outbox.store.as_ref(), 8).await.unwrap();
        let topics: Vec<&str> = messages
            .iter()
            .map(|m| m.message().topic.as_str())
            .collect();
        assert_eq!(topics, ["platform.status"; 2]);
        assert_eq!(ids(&outbox.claim(8).await), mails[2..]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_claim_at_the_same_time_never_claim_the_same_mail() {
    for backend in Backend::ALL {
        let outbox = Outbox::on(backend).await;
        let mails: BTreeSet<OutboxId> = outbox.queue(MAIL_TOPIC, 40).await.into_iter().collect();
        let node = || async {
            let mut sent = Vec::new();
            // Another node may have claimed the due mails. If no mail is left, all have been sent.
            while !outbox.queued_mails().await.is_empty() {
                // A node that waits for the others lets them go on.
                yield_now().await;
                for claimed in outbox.claim(3).await {
                    sent.push(claimed.id().clone());
                    outbox.store_outcome(&claimed, MailOutcome::Sent).await;
                }
            }
            sent
        };
        let sent = join_all((0..4).map(|_| node())).await.concat();
        assert_eq!(sent.len(), mails.len(), "{backend:?}");
        assert_eq!(sent.into_iter().collect::<BTreeSet<_>>(), mails);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_outcome_does_not_change_a_mail_that_another_node_has_claimed() {
    for backend in Backend::ALL {
        let outbox = Outbox::on(backend).await;
        outbox.queue(MAIL_TOPIC, 1).await;
        let slow = outbox.claim(1).await.remove(0);
        assert!(outbox.claim(1).await.is_empty(), "{backend:?}");
        outbox.clock.advance(Duration::from_secs(121));
        let quick = outbox.claim(1).await.remove(0);
        assert_eq!((slow.attempt(), quick.attempt()), (1, 2));
        let claimed = outbox.queued_mails().await;
        for fate in [MailOutcome::PutOff, MailOutcome::Released] {
            outbox.store_outcome(&slow, fate).await;
        }
        assert_eq!(outbox.queued_mails().await, claimed);
        let to = Email::parse("p0@example.org").unwrap();
        for mail in [&quick, &slow] {
            outbox
                .store_outcome(mail, MailOutcome::Refused(to.clone()))
                .await;
        }
        assert!(outbox.queued_mails().await.is_empty());
        assert_eq!(outbox.audit_count("mail.refused").await, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_of_a_message_lasts_longer_than_its_delivery() {
    for backend in Backend::ALL {
        let outbox = Outbox::on(backend).await;
        let store = outbox.store.as_ref();
        let cx = Context::system(outbox.entropy.clone());
        let ids = outbox.queue("platform.status", 3).await;
        let first = claim_messages(store, 2).await.unwrap();
        let second = claim_messages(store, 2).await.unwrap();
        let claimed: Vec<&OutboxId> = first.iter().chain(&second).map(id).collect();
        assert_eq!(claimed, ids.iter().collect::<Vec<_>>(), "{backend:?}");
        // The maximum duration of a delivery, and the same time again to store its outcome.
        outbox.clock.advance(Duration::from_secs(119));
        assert!(claim_messages(store, 8).await.unwrap().is_empty());
        let delivered = [(first[0].clone(), MessageOutcome::Delivered)];
        store_message_outcomes(&cx, store, &delivered)
            .await
            .unwrap();
        outbox.clock.advance(Duration::from_secs(2));
        let again = claim_messages(store, 8).await.unwrap();
        let attempts: Vec<(&OutboxId, i64)> = again
            .iter()
            .map(|claimed| (id(claimed), claimed.message().attempts))
            .collect();
        assert_eq!(attempts, [(&ids[1], 2), (&ids[2], 2)]);
        // A late outcome for a message that another node has claimed changes nothing.
        for outcome in [MessageOutcome::Rescheduled, MessageOutcome::Released] {
            let late = [(first[1].clone(), outcome)];
            store_message_outcomes(&cx, store, &late).await.unwrap();
        }
        assert!(claim_messages(store, 8).await.unwrap().is_empty());
        let release = |claimed| (claimed, MessageOutcome::Released);
        let released: Vec<_> = again.into_iter().map(release).collect();
        store_message_outcomes(&cx, store, &released).await.unwrap();
        let released = claim_messages(store, 8).await.unwrap();
        assert!(
            released
                .iter()
                .all(|claimed| claimed.message().attempts == 2)
        );
        assert_eq!(released.len(), 2);
    }
}

fn id(claimed: &ClaimedMessage) -> &OutboxId {
    &claimed.message().id
}
