//! The audit: who did what to which thing, written in the unit of work of the change itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::{json_text, opt_json_text};
use crate::kernel::{AuditId, JsonText, Line, PlatformId, Timestamp, record, text_enum};

text_enum! {
    /// Which of two lists an entry belongs to.
    #[derive(Default)]
    pub enum AuditStream {
        /// What was done.
        #[default]
        Changes = "changes",
        /// Who read the audit. Kept apart, so that reading does not change what is read.
        Reads = "reads",
    }
}

/// An entry of the audit (interface: "Audit entry"). Never changed, never removed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct AuditEntry {
    /// The entry's id.
    pub id: AuditId,
    /// The list it belongs to.
    #[serde(skip)]
    pub stream: AuditStream,
    /// The platform it belongs to; `None` for what concerns the installation or a person.
    pub platform_id: Option<PlatformId>,
    /// Who did it.
    pub actor_id: String,
    /// `user`, `api_key`, `service`, `system` or `anonymous`.
    pub actor_type: String,
    /// What was done: `thing.verb_in_past`, `platform.suspended`.
    pub action: String,
    /// The kind of thing it was done to, the first segment of the action: `platform`.
    pub entity_type: String,
    /// The id of the thing.
    pub entity_id: String,
    /// The thing before, without secrets.
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(strategy = "opt_json_text()")
    )]
    pub before: Option<JsonText>,
    /// The thing after, without secrets.
    #[cfg_attr(
        any(test, feature = "proptest"),
        proptest(strategy = "opt_json_text()")
    )]
    pub after: Option<JsonText>,
    /// The request behind it: `requestId`, `ip`, `userAgent`, and the `credential` its caller was known by: `{type, id}`.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json_text()"))]
    pub metadata: JsonText,
    /// When.
    pub created_at: Timestamp,
}

record! {
    AuditEntry as "audit entry" by id, asked AuditQuery;
}

/// Which entries of what was done. Every part that is given must match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditQuery {
    /// Of this stream; of changes, unless said.
    pub stream: AuditStream,
    /// Of this platform.
    pub platform_id: Option<PlatformId>,
    /// By this actor.
    pub actor_id: Option<String>,
    /// Exactly this action.
    pub action: Option<String>,
    /// This action, or any action whose first segment it is (`platform` finds `platform.suspended`).
    pub event_type: Option<String>,
    /// With this kind of thing, or this very thing.
    pub entity: Option<String>,
    /// Not before this instant.
    pub from: Option<Timestamp>,
    /// Before this instant.
    pub to: Option<Timestamp>,
    /// Of no platform.
    pub without_platform: bool,
    /// In which order.
    pub order: AuditOrder,
    /// Without those that cannot be read, which a verification names, so that they keep nobody from the others.
    pub leaves_out_damaged: bool,
}

/// In which order entries come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AuditOrder {
    /// The newest first.
    #[default]
    NewestFirst,
    /// The oldest first, those behind this entry alone if one is named: by its instant and id.
    OldestFirst(Option<(Timestamp, AuditId)>),
}

/// The first segment of an action: the kind of thing it is done to.
#[must_use]
pub fn segment_of(action: &str) -> &str {
    action.split('.').next().unwrap_or(action)
}

/// Which entries of a platform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct PlatformAuditFilter {
    /// Exactly this action.
    pub action: Option<Line<0, 255>>,
    /// With this kind of thing, or this very thing.
    pub entity: Option<Line<0, 255>>,
}

/// Which entries across platforms.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditFilter {
    /// Of this platform.
    pub platform_id: Option<PlatformId>,
    /// By this actor.
    pub actor_id: Option<Line<0, 255>>,
    /// This action, or any action with this first segment.
    pub event_type: Option<Line<0, 255>>,
    /// Not before this instant.
    pub from: Option<Timestamp>,
    /// Before this instant.
    pub to: Option<Timestamp>,
}

impl From<PlatformAuditFilter> for AuditQuery {
    fn from(filter: PlatformAuditFilter) -> Self {
        Self {
            action: filter.action.map(|action| action.to_string()),
            entity: filter.entity.map(|entity| entity.to_string()),
            leaves_out_damaged: true,
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
            leaves_out_damaged: true,
            ..Self::default()
        }
    }
}
