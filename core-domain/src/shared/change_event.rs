//! What is told outside of a change: an audit entry as the change feed and webhooks give it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::AuditEntry;
use crate::kernel::{JsonText, PlatformId, Timestamp};

/// A change that was made, in the order of the change feed (`GET /api/v1/events`): a sealed audit entry of the stream of
/// changes, without the request behind it. It never changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeEvent {
    /// The event's place in the feed, as decimal digits: later events have greater numbers, not always the next one. What a
    /// client sends as `Last-Event-ID`, and by what it knows an event it was told before.
    pub id: String,
    /// What was done, the audit's action: `platform.suspended`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The platform it belongs to; `null` for what concerns the installation or a person.
    pub platform_id: Option<PlatformId>,
    /// The kind of thing it was done to: `platform`.
    pub entity_type: String,
    /// The id of the thing.
    pub entity_id: String,
    /// Who did it.
    pub actor_id: String,
    /// `user`, `api_key`, `service`, `system` or `anonymous`.
    pub actor_type: String,
    /// When it was done. Not the order of the feed: of two that were made at the same time either may come first.
    pub created_at: Timestamp,
    /// The thing before, without secrets; `null` when it is new.
    pub before: Option<JsonText>,
    /// The thing after, without secrets; `null` when it is gone.
    pub after: Option<JsonText>,
}

impl ChangeEvent {
    /// The event of an entry that was sealed at this position in the installation.
    #[must_use]
    pub fn of(position: i64, entry: &AuditEntry) -> Self {
        Self {
            id: position.to_string(),
            event_type: entry.action.clone(),
            platform_id: entry.platform_id.clone(),
            entity_type: entry.entity_type.clone(),
            entity_id: entry.entity_id.clone(),
            actor_id: entry.actor_id.clone(),
            actor_type: entry.actor_type.clone(),
            created_at: entry.created_at,
            before: entry.before.clone(),
            after: entry.after.clone(),
        }
    }

    /// Tells whether it is of a type somebody wants: its action, or the first segment of it (`platform` wants
    /// `platform.suspended`).
    #[must_use]
    pub fn is_of_type(&self, wanted: &str) -> bool {
        self.event_type == wanted || self.event_type.split('.').next() == Some(wanted)
    }
}
