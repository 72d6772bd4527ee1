//! The audit: who did what to which thing, written in the unit of work of the change itself.

use serde_json::Value;

use crate::kernel::{AuditId, Context, PlatformId, Result, Timestamp};
use crate::port::{Record, UnitOfWork};

/// An entry of the audit (interface: "Audit entry"). Never changed, never removed.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditEntry {
    /// The entry's id.
    pub id: AuditId,
    /// The platform it belongs to; `None` for what concerns the installation or a person.
    pub platform_id: Option<PlatformId>,
    /// Who did it.
    pub actor_id: String,
    /// `user`, `service`, `system` or `anonymous`.
    pub actor_type: String,
    /// What was done: `thing.verb_in_past`, `platform.suspended`.
    pub action: String,
    /// The kind of thing it was done to: `platform`.
    pub entity_type: String,
    /// The id of the thing.
    pub entity_id: String,
    /// The thing before, without secrets.
    pub before: Option<Value>,
    /// The thing after, without secrets.
    pub after: Option<Value>,
    /// The request behind it: `requestId`, `ip`, `userAgent`, and what the action adds.
    pub metadata: Value,
    /// When.
    pub created_at: Timestamp,
}

impl Record for AuditEntry {
    type Query = AuditQuery;
    const KIND: &'static str = "audit entry";

    fn key(&self) -> &str {
        self.id.as_str()
    }
}

/// Which entries; newest first. Every part that is given must match.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuditQuery {
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
}

/// What happened, for [`audited`].
#[derive(Clone, Debug, Default)]
pub struct Happening {
    /// The platform it belongs to, if any.
    pub platform_id: Option<PlatformId>,
    /// `thing.verb_in_past`.
    pub action: &'static str,
    /// The id of the thing; its kind is the first segment of the action.
    pub entity_id: String,
    /// The thing before.
    pub before: Option<Value>,
    /// The thing after.
    pub after: Option<Value>,
}

/// Writes an audit entry into the unit of work. If that fails, so does the change.
///
/// # Errors
/// When the store failed.
pub async fn audited(cx: &Context, uow: &mut dyn UnitOfWork, what: Happening) -> Result<()> {
    let now = uow.now().await?;
    let entry = AuditEntry {
        id: AuditId::generate(now, cx.entropy.as_ref()),
        platform_id: what.platform_id,
        actor_id: cx.caller.actor_id().to_owned(),
        actor_type: cx.caller.kind().to_owned(),
        action: what.action.to_owned(),
        entity_type: what
            .action
            .split('.')
            .next()
            .unwrap_or(what.action)
            .to_owned(),
        entity_id: what.entity_id,
        before: what.before,
        after: what.after,
        metadata: serde_json::json!({
            "requestId": cx.request.request_id,
            "ip": cx.request.ip,
            "userAgent": cx.request.user_agent,
        }),
        created_at: now,
    };
    uow.audit_entries().insert(entry).await?;
    Ok(())
}
