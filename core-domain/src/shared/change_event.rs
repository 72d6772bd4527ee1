//! Change events: audit entries in the form in which the change feed and webhooks deliver them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AuditEntry, first_segment};
use crate::kernel::{JsonText, PlatformId, Timestamp};

/// A change event of the feed `GET /api/v1/events` and of webhooks. It is a sealed audit entry of a change, without
/// data about the request. Events never change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeEvent {
    /// The position of the event in the feed, as decimal digits. Later events have greater numbers, possibly with gaps.
    /// Send it as `Last-Event-ID` to resume the feed, and use it to recognize duplicates.
    pub id: String,
    /// The type of the event, which is the action of the audit entry, for example `platform.suspended`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The platform that the event belongs to. `null` if it is about the installation or a person.
    pub platform_id: Option<PlatformId>,
    /// The type of the changed record, for example `platform`.
    pub entity_type: String,
    /// The id of the changed record.
    pub entity_id: String,
    /// The id of the actor that made the change.
    pub actor_id: String,
    /// The type of the actor: `user`, `api_key`, `service`, `system` or `anonymous`.
    pub actor_type: String,
    /// The time of the change. The feed is not ordered by it: concurrent changes may appear in any order.
    pub created_at: Timestamp,
    /// The record before the change, without secrets. `null` if the record is new.
    pub before: Option<JsonText>,
    /// The record after the change, without secrets. `null` if the record was deleted.
    pub after: Option<JsonText>,
}

impl ChangeEvent {
    /// Creates the event of an entry that was sealed at this position.
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

    /// Returns whether the event has this type: its action, or the first segment of its action (`platform` matches
    /// `platform.suspended`).
    #[must_use]
    pub fn is_of_type(&self, wanted: &str) -> bool {
        self.event_type == wanted || first_segment(&self.event_type) == wanted
    }
}
