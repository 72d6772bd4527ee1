//! Messages to webhooks: what is told to one, and how that went.

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
    Entropy, IllegalMove, JsonText, Machine, PlatformId, Timestamp, WebhookDeliveryId, WebhookId,
    random_up_to, record, retry_after, state_machine, text_enum,
};
use crate::shared::ChangeEvent;

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

/// The most bytes of a message.
pub const LONGEST_MESSAGE: usize = 256 * 1024;

#[derive(Serialize)]
struct Message<'e, D> {
    r#type: &'e str,
    timestamp: Timestamp,
    data: D,
    /// Said only when it is so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

/// The message that tells of a change: `{type, timestamp, data}`, with the event as `data`. Where that would be more than
/// [`LONGEST_MESSAGE`], `before` and `after` are null and `truncated` is true beside them.
#[must_use]
pub fn change_message(event: &ChangeEvent) -> JsonText {
    let whole = message(&event.event_type, event.created_at, event, false);
    if whole.as_str().len() <= LONGEST_MESSAGE {
        return whole;
    }
    let bare = ChangeEvent {
        before: None,
        after: None,
        ..event.clone()
    };
    message(&event.event_type, event.created_at, &bare, true)
}

/// The type and the message with which somebody tries a webhook out.
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

/// The pauses after the first, the second, .. attempt, in seconds; after the last of them comes the last attempt.
const PAUSES: [u64; 9] = [
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

/// The longest pause a receiver can ask for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(HOUR);

/// The instant of the attempt after this many; `None` when there is none. A tenth of the pause may be added, so that
/// messages that failed together do not come back together; and it is not before the receiver allows.
pub(super) fn next_attempt(
    attempts: i64,
    now: Timestamp,
    retry_after: Duration,
    entropy: &dyn Entropy,
) -> Option<Timestamp> {
    let pause = PAUSES.get(usize::try_from(attempts).ok()?.checked_sub(1)?)?;
    let jitter = random_up_to(entropy, pause * 100);
    let ours = now.plus(Duration::from_millis(pause * 1_000 + jitter));
    Some(ours.max(now.plus(retry_after.min(LONGEST_RETRY_AFTER))))
}

#[cfg(test)]
mod tests {
    use WebhookDeliveryStatus::{Failed, Pending, Succeeded};
    use proptest::prelude::*;

    use crate::kernel::strategy::some;
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

    fn event(after: usize) -> ChangeEvent {
        let mut entry = some::<AuditEntry>(1).remove(0);
        entry.before = Some(JsonText::of("old"));
        entry.after = Some(JsonText::of(&"x".repeat(after)));
        ChangeEvent::of(7, &entry)
    }

    #[test]
    fn a_message_holds_the_whole_event_unless_it_would_be_too_long_and_says_so() {
        let small = event(10);
        let told = change_message(&small).value();
        assert_eq!(told["data"], serde_json::to_value(&small).unwrap());
        assert_eq!(
            (&told["type"], &told["timestamp"]),
            (&told["data"]["type"], &told["data"]["createdAt"])
        );
        assert!(told.get("truncated").is_none());
        let large = event(LONGEST_MESSAGE);
        let told = change_message(&large);
        assert!(told.as_str().len() < 4_096);
        let told = told.value();
        assert_eq!(told["truncated"], true);
        assert!(told["data"]["before"].is_null() && told["data"]["after"].is_null());
        assert_eq!(told["data"]["id"], "7");
    }

    proptest! {
        #[test]
        fn a_pause_is_that_of_the_list_and_at_most_a_tenth_more(seed: u64, attempts in 1_usize..10) {
            let (now, entropy) = (Timestamp::from_seconds(1_000), SeededEntropy::new(seed));
            let at = next_attempt(attempts.try_into().unwrap(), now, Duration::ZERO, &entropy).unwrap();
            let pause = Duration::from_secs(PAUSES[attempts - 1]);
            prop_assert!(at >= now.plus(pause) && at <= now.plus(pause * 11 / 10));
        }
    }

    #[test]
    fn after_ten_attempts_there_is_no_other() {
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
        assert_eq!(PAUSES.iter().sum::<u64>(), 75 * HOUR + 35 * MINUTE + 5);
    }

    #[test]
    fn a_receiver_may_ask_for_a_longer_pause_of_up_to_an_hour() {
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
