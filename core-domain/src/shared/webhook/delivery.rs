//! Messages to webhooks: their content, status and delivery attempts.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Webhook;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::few;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::json_text;
use crate::kernel::{
    Entropy, IllegalTransition, JsonText, Machine, PlatformId, Timestamp, WebhookDeliveryId,
    WebhookId, random_up_to, record, retry_after, state_machine, text_enum,
};
use crate::shared::ChangeEvent;

/// Maximum number of stored attempts of a message. Older ones are removed.
const MAX_LOGGED_ATTEMPTS: usize = 20;

text_enum! {
    /// The status of a message to a webhook.
    pub enum WebhookDeliveryStatus {
        /// The message was not delivered yet. It is sent when it is due.
        Pending = "pending",
        /// The message was delivered: the receiver responded with a status from 200 to 299.
        Succeeded = "succeeded",
        /// The message was not delivered, and no further attempt follows.
        Failed = "failed",
    }
}

impl WebhookDeliveryStatus {
    /// The final statuses. Only a replay changes them.
    pub const ENDED: [Self; 2] = [Self::Succeeded, Self::Failed];
}

state_machine! {
    /// An event in the life of a message. A new message is `pending`.
    pub enum WebhookDeliveryEvent moves WebhookDeliveryStatus {
        /// The receiver accepted the message.
        Succeed = "succeed": [Pending] => Succeeded, "webhook.delivered";
        /// No further attempt follows.
        Fail = "fail": [Pending] => Failed, "webhook.delivery_failed";
        /// The message is sent again.
        Replay = "replay": [Succeeded, Failed] => Pending, "webhook.delivery_replayed";
    }
}

/// An attempt to deliver a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct WebhookAttempt {
    /// The time at which the attempt started.
    pub at: Timestamp,
    /// The HTTP status of the receiver's response. `null` if there was none.
    pub status: Option<u16>,
    /// Duration of the attempt in milliseconds.
    pub duration_ms: u32,
    /// Why the attempt failed. `null` if it succeeded.
    pub error: Option<String>,
    /// The first 1,024 bytes of the response body, as text. `null` if there was no response.
    pub body: Option<String>,
}

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookOutcome {
    /// The attempt to add to the log.
    pub attempt: WebhookAttempt,
    /// The `Retry-After` header of the response, if it had one.
    pub retry_after: Option<String>,
}

impl WebhookOutcome {
    /// Returns whether the receiver accepted the message: the status is from 200 to 299.
    #[must_use]
    pub fn is_success(&self) -> bool {
        matches!(self.attempt.status, Some(200..=299))
    }

    /// Returns whether the receiver refuses all further messages: the status is 410.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.attempt.status == Some(410)
    }
}

/// A message to a webhook. It is delivered at least once and in no particular order. Receivers can detect duplicates by
/// its id, which is sent in the header `webhook-id`.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct WebhookDelivery {
    /// Unique id of the message; the same for every attempt.
    pub id: WebhookDeliveryId,
    /// The id of the webhook that receives the message.
    pub webhook_id: WebhookId,
    /// The platform of the webhook. `null` for a webhook of the installation.
    pub platform_id: Option<PlatformId>,
    /// The id of the change event in the message. `null` for a test message.
    pub event_id: Option<String>,
    /// The type of the event, for example `platform.suspended`; `webhook.test` for a test message.
    pub event_type: String,
    /// The request body; the same bytes for every attempt.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json_text()"))]
    pub payload: JsonText,
    /// The current status of the message.
    pub status: WebhookDeliveryStatus,
    /// Number of attempts since the message was queued or last replayed, including one in progress.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub attempts: i64,
    /// The earliest time of the next attempt. `null` if no attempt follows.
    pub next_attempt_at: Option<Timestamp>,
    /// The HTTP status of the latest attempt. `null` if there was no attempt or no response.
    pub last_status: Option<u16>,
    /// Why the latest attempt failed, or why the message was not sent. `null` if the latest attempt succeeded or there
    /// was none.
    pub last_error: Option<String>,
    /// The latest attempts, oldest first, at most 20.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "few()"))]
    pub attempt_log: Vec<WebhookAttempt>,
    /// The time at which the message was queued.
    pub created_at: Timestamp,
    /// The time of the message's latest change.
    pub updated_at: Timestamp,
}

record! {
    WebhookDelivery as "webhook delivery" by id, asked WebhookDeliveryQuery;
}

/// Filters for the messages of a webhook.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct WebhookDeliveryFilter {
    /// Returns only messages in this status.
    pub status: Option<WebhookDeliveryStatus>,
}

/// Queries for messages to webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookDeliveryQuery {
    /// The messages to a webhook, newest first.
    To {
        /// The webhook that receives the messages.
        webhook: WebhookRef,
        /// If given, matches only messages in this status.
        status: Option<WebhookDeliveryStatus>,
    },
    /// One message to a webhook.
    One {
        /// The webhook that receives the messages.
        webhook: WebhookRef,
        /// The id of the message.
        id: WebhookDeliveryId,
    },
    /// The failed messages to a webhook that were queued at or after a time, oldest first.
    FailedSince {
        /// The webhook that receives the messages.
        webhook: WebhookRef,
        /// The earliest time of queueing.
        since: Timestamp,
    },
    /// The messages that are due, longest due first.
    DueAt {
        /// The current time.
        now: Timestamp,
        /// Webhooks whose messages are left out.
        except: Vec<WebhookId>,
    },
    /// The messages that ended before this time, earliest first.
    EndedBefore(Timestamp),
    /// The messages to all webhooks of a platform.
    OfPlatform(PlatformId),
}

/// A webhook and the platform that it belongs to. Its messages belong to the same platform.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookRef {
    /// The id of the webhook.
    pub id: WebhookId,
    /// The platform of the webhook; `None` if it belongs to the installation.
    pub platform_id: Option<PlatformId>,
}

impl From<&Webhook> for WebhookRef {
    fn from(webhook: &Webhook) -> Self {
        Self {
            id: webhook.id.clone(),
            platform_id: webhook.platform_id.clone(),
        }
    }
}

impl WebhookDelivery {
    /// Creates a pending message that is due immediately.
    #[must_use]
    pub fn queue(
        id: WebhookDeliveryId,
        webhook: &Webhook,
        event_id: Option<String>,
        event_type: &str,
        payload: JsonText,
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

    /// Returns the message with another time for its next attempt.
    #[must_use]
    pub fn postpone(self, until: Timestamp, now: Timestamp) -> Self {
        Self {
            next_attempt_at: Some(until),
            updated_at: now,
            ..self
        }
    }

    /// Returns the message as failed without an attempt, with this reason.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the message has already ended.
    pub fn into_failed(self, why: &str, now: Timestamp) -> Result<Self, IllegalTransition> {
        Ok(Self {
            status: WebhookDeliveryEvent::Fail.next(self.status)?,
            next_attempt_at: None,
            last_error: Some(why.to_owned()),
            updated_at: now,
            ..self
        })
    }

    /// Returns the message after an attempt, which is already counted. The message succeeds, waits for the next
    /// attempt, or fails: after the tenth attempt, or if the receiver responded with 410.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the message has already ended.
    pub fn after_attempt(
        mut self,
        outcome: &WebhookOutcome,
        now: Timestamp,
        entropy: &dyn Entropy,
    ) -> Result<Self, IllegalTransition> {
        let taken = WebhookDeliveryEvent::Succeed.next(self.status)?;
        let attempt = &outcome.attempt;
        self.last_status = attempt.status;
        self.last_error.clone_from(&attempt.error);
        self.attempt_log.push(attempt.clone());
        self.attempt_log
            .drain(..self.attempt_log.len().saturating_sub(MAX_LOGGED_ATTEMPTS));
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

    /// Returns the message as pending and due immediately, with all its attempts available again.
    ///
    /// # Errors
    /// [`IllegalTransition`] if the message has not ended.
    pub fn into_replayed(self, now: Timestamp) -> Result<Self, IllegalTransition> {
        Ok(Self {
            status: WebhookDeliveryEvent::Replay.next(self.status)?,
            attempts: 0,
            next_attempt_at: Some(now),
            updated_at: now,
            ..self
        })
    }
}

/// Maximum size of a message, in bytes.
pub const MAX_MESSAGE_BYTES: usize = 256 * 1024;

#[derive(Serialize)]
struct Message<'e, D> {
    r#type: &'e str,
    timestamp: Timestamp,
    data: D,
    /// `true` if parts of `data` were left out; omitted otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

/// Returns the message for a change: `{type, timestamp, data}` with the event as `data`. If it would be larger than
/// [`MAX_MESSAGE_BYTES`], `before` and `after` are `null` and `truncated` is `true`.
#[must_use]
pub fn change_message(event: &ChangeEvent) -> JsonText {
    let whole = message(&event.event_type, event.created_at, event, false);
    if whole.as_str().len() <= MAX_MESSAGE_BYTES {
        return whole;
    }
    let bare = ChangeEvent {
        before: None,
        after: None,
        ..event.clone()
    };
    message(&event.event_type, event.created_at, &bare, true)
}

/// Returns the type and content of a test message.
#[must_use]
pub fn test_message(webhook: &Webhook, now: Timestamp) -> (&'static str, JsonText) {
    const TYPE: &str = "webhook.test";
    let data = json!({ "webhookId": webhook.id, "platformId": webhook.platform_id });
    (TYPE, message(TYPE, now, data, false))
}

fn message(r#type: &str, timestamp: Timestamp, data: impl Serialize, truncated: bool) -> JsonText {
    JsonText::of(&Message {
        r#type,
        timestamp,
        data,
        truncated,
    })
}

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// Delays in seconds after the first, second and further attempts. The last attempt follows the last delay.
const RETRY_DELAYS: [u64; 9] = [
    5,
    5 * MINUTE,
    30 * MINUTE,
    2 * HOUR,
    5 * HOUR,
    10 * HOUR,
    14 * HOUR,
    20 * HOUR,
    24 * HOUR,
];

/// Maximum delay that a receiver can request.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(HOUR);

/// Returns the time of the attempt that follows this many; `None` if no attempt follows. Up to a tenth of the delay is
/// added as jitter, so that messages that failed together are not retried together. `retry_after` of the receiver is a
/// lower bound, up to one hour.
pub(super) fn next_attempt(
    attempts: i64,
    now: Timestamp,
    retry_after: Duration,
    entropy: &dyn Entropy,
) -> Option<Timestamp> {
    let pause = RETRY_DELAYS.get(usize::try_from(attempts).ok()?.checked_sub(1)?)?;
    let jitter = random_up_to(entropy, pause * 100);
    let ours = now.plus(Duration::from_millis(pause * 1_000 + jitter));
    Some(ours.max(now.plus(retry_after.min(MAX_RETRY_AFTER))))
}

#[cfg(test)]
mod tests {
    use WebhookDeliveryStatus::{Failed, Pending, Succeeded};
    use proptest::prelude::*;

    use crate::kernel::strategy::fixed_sample;
    use crate::kernel::{assert_only_table_moves, retry_after};
    use crate::shared::AuditEntry;
    use crate::testing::SeededEntropy;

    use super::*;

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
        fn random_events_follow_the_transition_table(
            events in prop::collection::vec(prop::sample::select(WebhookDeliveryEvent::ALL), 1..30),
        ) {
            assert_only_table_moves(Pending, &events);
        }

        #[test]
        fn message_is_due_exactly_while_pending_and_keeps_the_last_twenty_attempts(
            statuses in prop::collection::vec(prop::option::of(100_u16..600), 1..60),
        ) {
            let (webhook, entropy) = (fixed_sample::<Webhook>(1).remove(0), SeededEntropy::new(1));
            let id = WebhookDeliveryId::parse("d1").unwrap();
            let mut delivery = WebhookDelivery::queue(id, &webhook, None, "a.b", JsonText::of("x"), Timestamp::EPOCH);
            for status in statuses {
                if delivery.status != Pending {
                    prop_assert!(delivery.clone().after_attempt(&outcome(status), Timestamp::EPOCH, &entropy).is_err());
                    delivery = delivery.into_replayed(Timestamp::EPOCH).unwrap();
                }
                delivery.attempts += 1;
                delivery = delivery.after_attempt(&outcome(status), Timestamp::EPOCH, &entropy).unwrap();
                let wanted = match status {
                    Some(200..=299) => Succeeded,
                    Some(410) => Failed,
                    _ if delivery.attempts >= 10 => Failed,
                    _ => Pending,
                };
                prop_assert_eq!(delivery.status, wanted);
                prop_assert_eq!(delivery.next_attempt_at.is_some(), wanted == Pending);
                prop_assert_eq!(delivery.last_status, status);
                prop_assert!(delivery.attempt_log.len() <= MAX_LOGGED_ATTEMPTS);
            }
        }
    }

    fn event(after: usize) -> ChangeEvent {
        let mut entry = fixed_sample::<AuditEntry>(1).remove(0);
        entry.before = Some(JsonText::of("old"));
        entry.after = Some(JsonText::of(&"x".repeat(after)));
        ChangeEvent::of(7, &entry)
    }

    #[test]
    fn message_contains_the_whole_event_or_is_marked_as_truncated() {
        let small = event(10);
        let message = change_message(&small).value();
        assert_eq!(message["data"], serde_json::to_value(&small).unwrap());
        assert_eq!(
            (&message["type"], &message["timestamp"]),
            (&message["data"]["type"], &message["data"]["createdAt"])
        );
        assert!(message.get("truncated").is_none());
        let large = event(MAX_MESSAGE_BYTES);
        let message = change_message(&large);
        assert!(message.as_str().len() < 4_096);
        let message = message.value();
        assert_eq!(message["truncated"], true);
        assert!(message["data"]["before"].is_null() && message["data"]["after"].is_null());
        assert_eq!(message["data"]["id"], "7");
    }

    proptest! {
        #[test]
        fn delay_is_the_listed_one_plus_at_most_a_tenth(seed: u64, attempts in 1_usize..10) {
            let (now, entropy) = (Timestamp::from_seconds(1_000), SeededEntropy::new(seed));
            let at = next_attempt(attempts.try_into().unwrap(), now, Duration::ZERO, &entropy).unwrap();
            let pause = Duration::from_secs(RETRY_DELAYS[attempts - 1]);
            prop_assert!(at >= now.plus(pause) && at <= now.plus(pause * 11 / 10));
        }
    }

    #[test]
    fn no_attempt_follows_the_tenth() {
        let next = |attempts| {
            next_attempt(
                attempts,
                Timestamp::EPOCH,
                Duration::ZERO,
                &SeededEntropy::new(1),
            )
        };
        for attempts in [0, 10, 11, -1, i64::MAX] {
            assert_eq!(next(attempts), None, "{attempts}");
        }
        assert_eq!(
            RETRY_DELAYS.iter().sum::<u64>(),
            75 * HOUR + 35 * MINUTE + 5
        );
    }

    #[test]
    fn receiver_can_request_a_longer_delay_up_to_one_hour() {
        let now = Timestamp::from_seconds(1_800_000_000);
        let next = |attempts, header| {
            let wanted = retry_after(header, now);
            next_attempt(attempts, now, wanted, &SeededEntropy::new(1))
                .unwrap()
                .since(now)
        };
        assert_eq!(next(1, "120"), Duration::from_secs(120));
        assert_eq!(
            next(1, "Fri, 15 Jan 2027 08:02:00 GMT"),
            Duration::from_secs(120)
        );
        assert_eq!(next(1, "86400"), Duration::from_secs(HOUR));
        assert!(next(2, "120") >= Duration::from_secs(300));
        for nothing in ["", "soon", "-5", "Thu, 14 Jan 2027 08:00:00 GMT"] {
            assert!(next(1, nothing) < Duration::from_secs(6), "{nothing}");
        }
    }
}
