//! What the body of a webhook says.

use serde::Serialize;
use serde_json::json;

use super::Webhook;
use crate::kernel::{JsonText, Timestamp};
use crate::shared::ChangeEvent;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::strategy::some;
    use crate::shared::AuditEntry;

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
}
