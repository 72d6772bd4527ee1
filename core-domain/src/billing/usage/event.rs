//! Usage events: what a producer reports (contract: "Usage").

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::billing::Metric;
use crate::kernel::{
    EntityId, Error, Issue, PlatformId, Result, StackId, TextError, TextValue, Timestamp, record,
    text, text_enum,
};

/// Maximum number of events in a batch.
pub const MAX_EVENTS: usize = 1_000;

/// Maximum quantity of one event.
pub const MAX_QUANTITY: i64 = 1_000_000_000_000_000;

/// Maximum time between now and the time of an event in the future.
const MAX_AHEAD: Duration = Duration::from_secs(5 * 60);

/// Maximum age of an event.
const MAX_AGE: Duration = Duration::from_secs(35 * 24 * 60 * 60);

/// Maximum number of characters of an id or a source.
const MAX_KEY_LENGTH: usize = 128;

fn usage_key(text: &str) -> Result<String, TextError> {
    if text.is_empty() {
        return Err(TextError::TooShort);
    }
    if text.len() > MAX_KEY_LENGTH {
        return Err(TextError::TooLong);
    }
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b':' | b'-');
    if text.bytes().all(is_allowed) {
        Ok(text.to_owned())
    } else {
        Err(TextError::Malformed)
    }
}

text! {
    /// The id or the source of an event: 1 to 128 characters of `[A-Za-z0-9_.:-]`.
    UsageKey, usage_key, { "type": "string", "minLength": 1, "maxLength": MAX_KEY_LENGTH, "pattern": "^[A-Za-z0-9_.:-]+$", "examples": ["gw:node-1:7:1763697737"] }
}

text_enum! {
    /// The reason why an event was rejected.
    pub enum UsageRefusal {
        /// An event with the same source and id has other content.
        EventConflict = "EVENT_CONFLICT",
        /// The event is older than 35 days.
        EventTooOld = "EVENT_TOO_OLD",
        /// The metric is unknown, or it is derived from other events.
        MetricUnknown = "METRIC_UNKNOWN",
        /// The platform is unknown.
        PlatformUnknown = "PLATFORM_UNKNOWN",
        /// The metric is not a sum, so a difference cannot correct it.
        NotCorrectable = "METRIC_NOT_CORRECTABLE",
    }
}

text_enum! {
    /// The outcome of one event.
    pub enum EventStatus {
        /// The event was stored and counts.
        Accepted = "accepted",
        /// The event was stored before.
        Duplicate = "duplicate",
        /// The event does not count.
        Rejected = "rejected",
    }
}

/// An event of a request.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewUsageEvent {
    /// The id of the event, which is unique within its source. Derive it from the fact that it reports, so that a
    /// repeated delivery has the same id.
    pub id: UsageKey,
    /// The program that reports the event.
    pub source: UsageKey,
    /// The platform that used something.
    pub platform_id: PlatformId,
    /// The stack that used it. Default: none.
    pub stack_id: Option<StackId>,
    /// The tenant of the platform that used it. Default: none.
    pub tenant_id: Option<EntityId>,
    /// The metric, such as `requests`.
    #[schemars(length(min = 1, max = 64))]
    pub metric: String,
    /// The quantity in units of the metric, from 0 to 10^15. A correction can be negative.
    #[schemars(range(min = -1_000_000_000_000_000_i64, max = 1_000_000_000_000_000_i64))]
    pub quantity: i64,
    /// When it was used: at most 35 days ago.
    pub time: Timestamp,
    /// The id of the event that this one corrects. `quantity` is then the difference. Default: none.
    pub corrects_id: Option<UsageKey>,
}

/// Request body that reports usage.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngestUsage {
    /// The events: 1 to 1,000.
    #[schemars(length(min = 1, max = 1000))]
    pub events: Vec<NewUsageEvent>,
}

/// The outcome of one event of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventOutcome {
    /// The id of the event.
    pub id: UsageKey,
    /// The program that reported the event.
    pub source: UsageKey,
    /// `accepted`, `duplicate` or `rejected`.
    pub status: EventStatus,
    /// Why the event was rejected. `null` if it was not.
    pub code: Option<UsageRefusal>,
}

/// The outcomes of a batch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IngestedUsage {
    /// The number of accepted events.
    pub accepted: u32,
    /// The number of events that were stored before.
    pub duplicates: u32,
    /// The number of rejected events.
    pub rejected: u32,
    /// The outcome of each event, in the order of the request.
    pub events: Vec<EventOutcome>,
}

impl IngestedUsage {
    /// Counts the outcomes of a batch.
    #[must_use]
    pub fn of(events: Vec<EventOutcome>) -> Self {
        let count = |status| {
            let matching = events.iter().filter(|event| event.status == status);
            u32::try_from(matching.count()).unwrap_or(u32::MAX)
        };
        Self {
            accepted: count(EventStatus::Accepted),
            duplicates: count(EventStatus::Duplicate),
            rejected: count(EventStatus::Rejected),
            events,
        }
    }
}

impl IngestUsage {
    /// Checks the rules that hold for the whole batch.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` lists every violation: an empty batch or one of more than 1,000 events, a quantity that is out
    /// of range, a negative quantity without `correctsId`, and a time more than 5 minutes in the future.
    pub fn check(&self, now: Timestamp) -> Result<()> {
        let mut issues = Vec::new();
        if self.events.is_empty() || self.events.len() > MAX_EVENTS {
            let message = "A batch has 1 to 1,000 events.";
            issues.push(Issue::field("events", "invalid", message));
        }
        for (at, event) in self.events.iter().enumerate() {
            let issue = |field: &str, code, message: &str| Issue {
                path: vec!["events".to_owned(), at.to_string(), field.to_owned()],
                code,
                message: message.to_owned(),
            };
            if event.quantity < 0 && event.corrects_id.is_none() {
                let message = "A quantity is not negative, unless the event corrects another one.";
                issues.push(issue("quantity", "too_small", message));
            }
            if event.quantity.unsigned_abs() > MAX_QUANTITY.unsigned_abs() {
                issues.push(issue(
                    "quantity",
                    "too_large",
                    "A quantity is at most 10^15.",
                ));
            }
            if event.time > now.plus(MAX_AHEAD) {
                let message = "The time is more than 5 minutes in the future.";
                issues.push(issue("time", "in_future", message));
            }
        }
        match issues.is_empty() {
            true => Ok(()),
            false => Err(Error::Invalid(issues)),
        }
    }
}

impl NewUsageEvent {
    /// Returns the event as it is stored, or the reason why it is rejected.
    ///
    /// # Errors
    /// [`UsageRefusal`] if the metric is unknown or cannot be corrected, or the event is too old.
    pub fn accept(self, now: Timestamp) -> Result<UsageEvent, UsageRefusal> {
        let metric = Metric::from_text(&self.metric).filter(|metric| metric.is_reported());
        let metric = metric.ok_or(UsageRefusal::MetricUnknown)?;
        if now.since(self.time) > MAX_AGE {
            return Err(UsageRefusal::EventTooOld);
        }
        if self.corrects_id.is_some() && !metric.is_sum() {
            return Err(UsageRefusal::NotCorrectable);
        }
        Ok(UsageEvent {
            id: format!("{}/{}/{}", self.platform_id, self.source, self.id),
            platform_id: self.platform_id,
            source: self.source,
            event_id: self.id,
            stack_id: self.stack_id,
            tenant_id: self.tenant_id,
            metric,
            quantity: self.quantity,
            time: self.time,
            corrects_id: self.corrects_id,
            received_at: now,
        })
    }

    /// Returns the outcome of the event.
    #[must_use]
    pub fn outcome(&self, status: EventStatus, code: Option<UsageRefusal>) -> EventOutcome {
        EventOutcome {
            id: self.id.clone(),
            source: self.source.clone(),
            status,
            code,
        }
    }
}

/// A stored event. It never changes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct UsageEvent {
    /// The platform, the source and the id, separated by `/`.
    #[cfg_attr(any(test, feature = "proptest"), proptest(regex = "[a-z]{1,12}"))]
    pub id: String,
    /// The platform that used something.
    pub platform_id: PlatformId,
    /// The program that reported the event.
    pub source: UsageKey,
    /// The id of the event within its source.
    pub event_id: UsageKey,
    /// The stack that used it. `None` if the event names none.
    pub stack_id: Option<StackId>,
    /// The tenant of the platform that used it. `None` if the event names none.
    pub tenant_id: Option<EntityId>,
    /// The metered quantity.
    pub metric: Metric,
    /// The quantity in units of the metric. Negative for a correction.
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(strategy = "crate::kernel::strategy::count()")
    )]
    pub quantity: i64,
    /// When it was used.
    pub time: Timestamp,
    /// The id of the event that this one corrects. `None` if it corrects none.
    pub corrects_id: Option<UsageKey>,
    /// When the event was stored.
    pub received_at: Timestamp,
}

record! {
    UsageEvent as "usage event" by id, asked UsageEventQuery;
}

impl UsageEvent {
    /// Returns whether another delivery reports the same fact: everything but the time of delivery is equal.
    #[must_use]
    pub fn has_content_of(&self, other: &Self) -> bool {
        let received_at = self.received_at;
        *self
            == Self {
                received_at,
                ..other.clone()
            }
    }
}

/// Queries for events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UsageEventQuery {
    /// The events that were stored before an instant, oldest first.
    ReceivedBefore(Timestamp),
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_seconds(1_800_000_000);

    fn event(change: impl FnOnce(&mut NewUsageEvent)) -> NewUsageEvent {
        let key = |text| UsageKey::parse(text).unwrap();
        let mut event = NewUsageEvent {
            id: key("e1"),
            source: key("test"),
            platform_id: PlatformId::parse("p1").unwrap(),
            stack_id: None,
            tenant_id: None,
            metric: "requests".to_owned(),
            quantity: 1,
            time: NOW,
            corrects_id: None,
        };
        change(&mut event);
        event
    }

    fn issues(events: Vec<NewUsageEvent>) -> usize {
        match (IngestUsage { events }).check(NOW) {
            Err(Error::Invalid(issues)) => issues.len(),
            _ => 0,
        }
    }

    #[test]
    fn a_batch_is_refused_with_every_violation() {
        let ahead = NOW.plus(Duration::from_secs(301));
        assert_eq!(issues(Vec::new()), 1);
        assert_eq!(issues(vec![event(|_| ()); 1_000]), 0);
        assert_eq!(issues(vec![event(|_| ()); 1_001]), 1);
        assert_eq!(issues(vec![event(|event| event.quantity = -1)]), 1);
        assert_eq!(
            issues(vec![event(|event| event.quantity = MAX_QUANTITY + 1)]),
            1
        );
        assert_eq!(issues(vec![event(|event| event.time = ahead); 2]), 2);
        let corrects = UsageKey::parse("e0").ok();
        let correction = event(|event| (event.quantity, event.corrects_id) = (-1, corrects));
        assert_eq!(issues(vec![correction]), 0);
    }

    #[test]
    fn an_event_is_rejected_with_its_code() {
        let day = |days: u64| NOW.minus(Duration::from_secs(days * 24 * 60 * 60));
        let corrects = || UsageKey::parse("e0").ok();
        for (event, expected) in [
            (event(|_| ()), None),
            (event(|event| event.time = day(35)), None),
            (
                event(|event| event.time = day(36)),
                Some(UsageRefusal::EventTooOld),
            ),
            (
                event(|event| event.metric = "moon_phases".to_owned()),
                Some(UsageRefusal::MetricUnknown),
            ),
            (
                event(|event| event.metric = "active_entities".to_owned()),
                Some(UsageRefusal::MetricUnknown),
            ),
            (event(|event| event.corrects_id = corrects()), None),
            (
                event(|event| {
                    event.metric = "storage_bytes".to_owned();
                    event.corrects_id = corrects();
                }),
                Some(UsageRefusal::NotCorrectable),
            ),
        ] {
            assert_eq!(event.accept(NOW).err(), expected);
        }
    }

    #[test]
    fn only_the_time_of_delivery_may_differ_between_deliveries() {
        let first = event(|_| ()).accept(NOW).unwrap();
        let later = event(|_| ())
            .accept(NOW.plus(Duration::from_secs(60)))
            .unwrap();
        assert!(first.has_content_of(&later));
        let other = event(|event| event.quantity = 2).accept(NOW).unwrap();
        assert!(!first.has_content_of(&other));
    }

    #[test]
    fn a_key_has_only_characters_that_the_stored_key_does_not_use() {
        assert!(UsageKey::parse("gw:node-1:7:42").is_ok());
        for text in ["", "a/b", "a b", &"x".repeat(129)] {
            assert!(UsageKey::parse(text).is_err(), "{text}");
        }
    }
}
