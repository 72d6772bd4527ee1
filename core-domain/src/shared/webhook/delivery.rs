//! Messages to webhooks: what is told to one, and how that went.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Webhook;
use super::schedule::next_attempt;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::{count, few, json_text};
use crate::kernel::{
    Entropy, IllegalMove, JsonText, Machine, PlatformId, Timestamp, WebhookDeliveryId, WebhookId,
    record, retry_after, state_machine, text_enum,
};

/// How many attempts of a message are remembered: the last.
const REMEMBERED: usize = 20;

text_enum! {
    /// Where a message stands.
    pub enum WebhookDeliveryStatus {
        /// Not taken yet; tried when it is due.
        Pending = "pending",
        /// Taken: the receiver answered with a status of success.
        Succeeded = "succeeded",
        /// Given up.
        Failed = "failed",
    }
}

impl WebhookDeliveryStatus {
    /// Those in which nothing happens by itself any more.
    pub const ENDED: [Self; 2] = [Self::Succeeded, Self::Failed];
}

state_machine! {
    /// What happens to a message. It is queued `pending`.
    pub enum WebhookDeliveryEvent moves WebhookDeliveryStatus {
        /// The receiver took it.
        Succeed = "succeed": [Pending] => Succeeded, "webhook.delivered";
        /// It is given up.
        Fail = "fail": [Pending] => Failed, "webhook.delivery_failed";
        /// It is sent once more.
        Replay = "replay": [Succeeded, Failed] => Pending, "webhook.delivery_replayed";
    }
}

/// An attempt to hand a message over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct WebhookAttempt {
    /// When it began.
    pub at: Timestamp,
    /// The status of the receiver's answer; `null` when there was none.
    pub status: Option<u16>,
    /// How long it took, in milliseconds.
    pub duration_ms: u32,
    /// Why it failed, if it did.
    pub error: Option<String>,
    /// The first 1,024 bytes of the receiver's answer, as text.
    pub body: Option<String>,
}

/// How an attempt ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookOutcome {
    /// The attempt.
    pub attempt: WebhookAttempt,
    /// The header `Retry-After` of the receiver's answer, if it had one.
    pub retry_after: Option<String>,
}

impl WebhookOutcome {
    /// Whether the receiver took the message: it answered with a status of success.
    #[must_use]
    pub fn is_success(&self) -> bool {
        matches!(self.attempt.status, Some(200..=299))
    }

    /// Whether the receiver said that it never takes one again.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.attempt.status == Some(410)
    }
}

/// A message to a webhook. It is sent at least once, in no promised order; its id, the header `webhook-id`, tells a
/// repetition.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct WebhookDelivery {
    /// The message's id; the same at every attempt.
    pub id: WebhookDeliveryId,
    /// To which webhook.
    pub webhook_id: WebhookId,
    /// The platform of the webhook.
    pub platform_id: Option<PlatformId>,
    /// The event it tells of; `null` for a test.
    pub event_id: Option<String>,
    /// The event's type.
    pub event_type: String,
    /// What it says; the same bytes at every attempt.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json_text()"))]
    pub payload: JsonText,
    /// Where it stands.
    pub status: WebhookDeliveryStatus,
    /// How often it was tried since it was queued, or last replayed.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub attempts: i64,
    /// When it is tried next; `null` when it is not.
    pub next_attempt_at: Option<Timestamp>,
    /// The status of the receiver's last answer.
    pub last_status: Option<u16>,
    /// Why it was not taken the last time, or was given up.
    pub last_error: Option<String>,
    /// The last attempts, oldest first.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub attempt_log: Vec<WebhookAttempt>,
    /// When it was queued.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

record! {
    WebhookDelivery as "webhook delivery" by id, asked WebhookDeliveryQuery;
}

/// Which messages of a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct WebhookDeliveryFilter {
    /// With this status.
    pub status: Option<WebhookDeliveryStatus>,
}

/// Questions about messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookDeliveryQuery {
    /// Those to a webhook, newest first.
    To {
        /// The webhook.
        webhook_id: WebhookId,
        /// With this status alone.
        status: Option<WebhookDeliveryStatus>,
    },
    /// One of these.
    One {
        /// The webhook.
        webhook_id: WebhookId,
        /// Which.
        id: WebhookDeliveryId,
    },
    /// Those to a webhook that were given up and were queued at an instant or later; oldest first.
    FailedSince {
        /// The webhook.
        webhook_id: WebhookId,
        /// The instant.
        since: Timestamp,
    },
    /// Those that may be tried at an instant, the longest due first.
    DueAt {
        /// The instant.
        now: Timestamp,
        /// To other webhooks than these.
        except: Vec<WebhookId>,
    },
    /// Those that ended before an instant.
    EndedBefore(Timestamp),
    /// Those to the webhooks of a platform.
    OfPlatform(PlatformId),
}

impl WebhookDelivery {
    /// A message to a webhook, due at once.
    #[must_use]
    pub fn queue(
        id: WebhookDeliveryId,
        webhook: &Webhook,
        event_id: Option<String>,
        (event_type, payload): (&str, JsonText),
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            webhook_id: webhook.id.clone(),
            platform_id: webhook.platform_id.clone(),
            event_id,
            event_type: event_type.to_owned(),
            payload,
            status: WebhookDeliveryStatus::Pending,
            attempts: 0,
            next_attempt_at: Some(now),
            last_status: None,
            last_error: None,
            attempt_log: Vec::new(),
            created_at: now,
            updated_at: now,
        }
    }

    /// The message put off until an instant.
    #[must_use]
    pub fn put_off(self, until: Timestamp, now: Timestamp) -> Self {
        Self {
            next_attempt_at: Some(until),
            updated_at: now,
            ..self
        }
    }

    /// The message given up without an attempt.
    ///
    /// # Errors
    /// [`IllegalMove`] for one that has ended.
    pub fn given_up(self, why: &str, now: Timestamp) -> Result<Self, IllegalMove> {
        Ok(Self {
            status: WebhookDeliveryEvent::Fail.next(self.status)?,
            next_attempt_at: None,
            last_error: Some(why.to_owned()),
            updated_at: now,
            ..self
        })
    }

    /// The message after an attempt, which has been counted already: taken, to be tried again, or given up after the tenth or
    /// when the receiver is gone.
    ///
    /// # Errors
    /// [`IllegalMove`] for one that has ended.
    pub fn after(
        mut self,
        outcome: &WebhookOutcome,
        now: Timestamp,
        entropy: &dyn Entropy,
    ) -> Result<Self, IllegalMove> {
        let taken = WebhookDeliveryEvent::Succeed.next(self.status)?;
        let attempt = &outcome.attempt;
        self.last_status = attempt.status;
        self.last_error.clone_from(&attempt.error);
        self.attempt_log.push(attempt.clone());
        self.attempt_log
            .drain(..self.attempt_log.len().saturating_sub(REMEMBERED));
        self.updated_at = now;
        self.next_attempt_at = None;
        if outcome.is_success() {
            self.status = taken;
            return Ok(self);
        }
        let wanted = outcome.retry_after.as_deref();
        let wanted = wanted.map_or_else(Default::default, |header| retry_after(header, now));
        if !outcome.is_gone() {
            self.next_attempt_at = next_attempt(self.attempts, now, wanted, entropy);
        }
        if self.next_attempt_at.is_none() {
            self.status = WebhookDeliveryEvent::Fail.next(self.status)?;
        }
        Ok(self)
    }

    /// The message to be sent once more, at once; it is tried as often as a new one.
    ///
    /// # Errors
    /// [`IllegalMove`] for one that has not ended.
    pub fn replayed(self, now: Timestamp) -> Result<Self, IllegalMove> {
        Ok(Self {
            status: WebhookDeliveryEvent::Replay.next(self.status)?,
            attempts: 0,
            next_attempt_at: Some(now),
            updated_at: now,
            ..self
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::kernel::assert_only_table_moves;
    use crate::kernel::strategy::some;
    use crate::testing::SeededEntropy;
    use WebhookDeliveryStatus::{Failed, Pending, Succeeded};

    fn outcome(status: Option<u16>) -> WebhookOutcome {
        WebhookOutcome {
            attempt: WebhookAttempt {
                at: Timestamp::EPOCH,
                status,
                duration_ms: 1,
                error: None,
                body: None,
            },
            retry_after: None,
        }
    }

    proptest! {
        #[test]
        fn any_sequence_of_events_makes_only_the_moves_of_the_table(
            events in prop::collection::vec(prop::sample::select(WebhookDeliveryEvent::ALL), 1..30),
        ) {
            assert_only_table_moves(Pending, &events);
        }

        #[test]
        fn a_message_is_due_exactly_while_it_is_pending_and_twenty_attempts_are_remembered(
            statuses in prop::collection::vec(prop::option::of(100_u16..600), 1..60),
        ) {
            let (webhook, entropy) = (some::<Webhook>(1).remove(0), SeededEntropy::new(1));
            let id = WebhookDeliveryId::parse("d1").unwrap();
            let message = ("a.b", JsonText::of("x"));
            let mut delivery = WebhookDelivery::queue(id, &webhook, None, message, Timestamp::EPOCH);
            for status in statuses {
                if delivery.status != Pending {
                    prop_assert!(delivery.clone().after(&outcome(status), Timestamp::EPOCH, &entropy).is_err());
                    delivery = delivery.replayed(Timestamp::EPOCH).unwrap();
                }
                delivery.attempts += 1;
                delivery = delivery.after(&outcome(status), Timestamp::EPOCH, &entropy).unwrap();
                let wanted = match status {
                    Some(200..=299) => Succeeded,
                    Some(410) => Failed,
                    _ if delivery.attempts >= 10 => Failed,
                    _ => Pending,
                };
                prop_assert_eq!(delivery.status, wanted);
                prop_assert_eq!(delivery.next_attempt_at.is_some(), wanted == Pending);
                prop_assert_eq!(delivery.last_status, status);
                prop_assert!(delivery.attempt_log.len() <= REMEMBERED);
            }
        }
    }
}
