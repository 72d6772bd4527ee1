//! The audit log. Each entry is written in the unit of work of the change that it records.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::{json_text, opt_json_text};
use crate::kernel::{AuditId, JsonText, Line, PlatformId, Timestamp, record, text_enum};

text_enum! {
    /// The list that an audit entry belongs to.
    pub enum AuditStream {
        /// Changes of records and other operations.
        Changes = "changes",
        /// Reads of the audit log. They are a separate list, so that reading the log does not change the list that is
        /// read.
        Reads = "reads",
    }
}

#[expect(
    clippy::derivable_impls,
    reason = "the macro accepts no attributes on values"
)]
impl Default for AuditStream {
    fn default() -> Self {
        Self::Changes
    }
}

/// An entry of the audit log. Entries are never changed, and removed only after they are archived.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct AuditEntry {
    /// Unique id of the entry. It starts with the time at which the action happened.
    pub id: AuditId,
    /// The list that the entry belongs to.
    #[serde(skip)]
    pub stream: AuditStream,
    /// The platform that the entry belongs to. `null` if it is about the installation or a person.
    pub platform_id: Option<PlatformId>,
    /// The id of the actor that performed the action.
    pub actor_id: String,
    /// The type of the actor: `user`, `api_key`, `service`, `system` or `anonymous`.
    pub actor_type: String,
    /// The action, as `type.verb` with the verb in the past tense, for example `platform.suspended`.
    pub action: String,
    /// The type of the affected record: the first segment of the action, for example `platform`.
    pub entity_type: String,
    /// The id of the affected record.
    pub entity_id: String,
    /// The record before the action, without secrets. `null` if it did not exist or the action changed no record.
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(strategy = "opt_json_text()")
    )]
    pub before: Option<JsonText>,
    /// The record after the action, without secrets. `null` if it was deleted or the action changed no record.
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(strategy = "opt_json_text()")
    )]
    pub after: Option<JsonText>,
    /// The request that caused the entry: `requestId`, `ip`, `userAgent`, and the `credential` that authenticated the
    /// caller: `{type, id}`.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json_text()"))]
    pub metadata: JsonText,
    /// The time at which the action happened.
    pub created_at: Timestamp,
}

record! {
    AuditEntry as "audit entry" by id, asked AuditQuery;
}

/// A query for audit entries. An entry must match every given filter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditQuery {
    /// Matches entries of this list. Default: changes.
    pub stream: AuditStream,
    /// Matches entries of this platform.
    pub platform_id: Option<PlatformId>,
    /// Matches entries of this actor.
    pub actor_id: Option<String>,
    /// Matches entries with exactly this action.
    pub action: Option<String>,
    /// Matches this action, and actions with this first segment (`platform` matches `platform.suspended`).
    pub event_type: Option<String>,
    /// Matches entries with this type of record or this record id.
    pub entity: Option<String>,
    /// Matches entries at or after this time.
    pub from: Option<Timestamp>,
    /// Matches entries before this time.
    pub to: Option<Timestamp>,
    /// `true` to match only entries that belong to no platform.
    pub without_platform: bool,
    /// The order of the entries. Default: newest first.
    pub order: AuditOrder,
    /// `true` to skip entries that cannot be decoded, so that readers still receive the others. A verification of the
    /// log reports such entries.
    pub skip_damaged: bool,
}

/// The order of audit entries. It is the order of their ids, which start with the time of creation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AuditOrder {
    /// The newest entry is first.
    #[default]
    NewestFirst,
    /// The oldest entry is first. With the id of an entry, only entries after it match.
    OldestFirst(Option<AuditId>),
}

/// Returns the first segment of an action: the type of the affected record.
#[must_use]
pub fn first_segment(action: &str) -> &str {
    action.split('.').next().unwrap_or(action)
}

/// Filters for the audit entries of a platform. An entry must match every given filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct PlatformAuditFilter {
    /// Returns only entries with exactly this action.
    pub action: Option<Line<0, 255>>,
    /// Returns only entries with this type of record or this record id.
    pub entity: Option<Line<0, 255>>,
}

/// Filters for audit entries across platforms. An entry must match every given filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditFilter {
    /// Returns only entries of this platform.
    pub platform_id: Option<PlatformId>,
    /// Returns only entries of this actor.
    pub actor_id: Option<Line<0, 255>>,
    /// Returns only entries with this action, or with this first segment of the action.
    pub event_type: Option<Line<0, 255>>,
    /// Returns only entries at or after this time.
    pub from: Option<Timestamp>,
    /// Returns only entries before this time.
    pub to: Option<Timestamp>,
}

impl From<PlatformAuditFilter> for AuditQuery {
    fn from(filter: PlatformAuditFilter) -> Self {
        Self {
            action: filter.action.map(|action| action.to_string()),
            entity: filter.entity.map(|entity| entity.to_string()),
            skip_damaged: true,
            ..Self::default()
        }
    }
}

impl From<AuditFilter> for AuditQuery {
    fn from(filter: AuditFilter) -> Self {
        Self {
            platform_id: filter.platform_id,
            actor_id: filter.actor_id.map(|actor| actor.to_string()),
            event_type: filter.event_type.map(|event| event.to_string()),
            from: filter.from,
            to: filter.to,
            skip_damaged: true,
            ..Self::default()
        }
    }
}
