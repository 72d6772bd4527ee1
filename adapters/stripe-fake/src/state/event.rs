//! Events.

use serde_json::{Value, json};

#[derive(Clone)]
pub(crate) struct Event {
    pub(crate) id: String,
    pub(crate) created: i64,
    pub(crate) is_live: bool,
    pub(crate) version: String,
    pub(crate) kind: String,
    /// The object as it was at the time of the event.
    pub(crate) object: Value,
}

impl Event {
    pub(crate) fn render(&self) -> Value {
        json!({
            "id": self.id,
            "object": "event",
            "api_version": self.version,
            "created": self.created,
            "data": {"object": self.object},
            "livemode": self.is_live,
            "pending_webhooks": 0,
            "request": {"id": null, "idempotency_key": null},
            "type": self.kind,
        })
    }
}
