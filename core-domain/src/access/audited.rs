//! Writes that change a record and add its audit entry in one call, so that neither exists without the other.

use serde::Serialize;
use serde_json::Value;

use super::key::RecordKey;
use super::records::Covers;
use super::unaudited;
use crate::kernel::{
    AuditId, Audited, Context, Credential, Effect, Error, JsonText, PlatformId, Result, Stored,
};
use crate::port::{Persisted, Repository, UnitOfWork};
use crate::shared::{AuditEntry, AuditStream, first_segment};

/// Inserts a record.
///
/// # Errors
/// `CONFLICT` if a unique value is taken; [`Error::Store`] names the unique set.
pub async fn insert<R: Persisted + Audited>(
    cx: &Context,
    scope: &impl Covers<R::Owner>,
    uow: &mut dyn UnitOfWork,
    record: R,
    action: &'static str,
) -> Result<Stored<R>> {
    ensure_covered(scope, &record)?;
    let stored = repository::<R>(uow).insert(record).await?;
    let after = Some(stored.audit_snapshot());
    write_entry(cx, scope, uow, &*stored, action, None, after).await?;
    Ok(stored)
}

/// Replaces `seen` with `next` if the record has not changed since it was read, and if the `If-Match` condition of the
/// request holds. Writes nothing if `next` equals `seen`.
///
/// # Errors
/// - `VERSION_CONFLICT` if the `If-Match` condition does not hold.
/// - `CONFLICT` if a unique value is taken, or if a concurrent request changed the record.
pub async fn replace<R: Persisted + Audited>(
    cx: &Context,
    scope: &impl Covers<R::Owner>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<R>,
    mut next: R,
    action: &'static str,
) -> Result<Stored<R>> {
    ensure_covered(scope, &**seen)?;
    cx.check_if_match(seen)?;
    if next == **seen {
        return Ok(seen.clone());
    }
    next.touch(uow.now().await?);
    let stored = repository::<R>(uow).replace(seen, next).await?;
    let (before, after) = (seen.audit_snapshot(), stored.audit_snapshot());
    let (before, after) = (Some(before), Some(after));
    write_entry(cx, scope, uow, &*stored, action, before, after).await?;
    Ok(stored)
}

/// Removes a record if it has not changed since it was read, and if the `If-Match` condition of the request holds.
///
/// # Errors
/// - `VERSION_CONFLICT` if the `If-Match` condition does not hold.
/// - `CONFLICT` if a concurrent request changed the record.
pub async fn remove<R: Persisted + Audited>(
    cx: &Context,
    scope: &impl Covers<R::Owner>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<R>,
    action: &'static str,
) -> Result<()> {
    ensure_covered(scope, &**seen)?;
    cx.check_if_match(seen)?;
    repository::<R>(uow).remove(seen).await?;
    let before = Some(seen.audit_snapshot());
    write_entry(cx, scope, uow, &**seen, action, before, None).await
}

/// An event that changed no record, for example a failed sign-in, a requested plan, or a read of the audit log.
#[derive(Clone, Debug, Default)]
pub struct AuditEvent {
    /// The platform that the event belongs to, if any.
    pub platform_id: Option<PlatformId>,
    /// The action, as `subject.past_participle`. The first segment becomes the entity type of the audit entry.
    pub action: &'static str,
    /// The id of the subject.
    pub entity_id: String,
    /// More facts about the event. Must not contain secrets.
    pub details: Option<Value>,
}

/// Writes an audit entry for an event that changed no record.
///
/// # Errors
/// Only those of the store.
pub async fn record_event(cx: &Context, uow: &mut dyn UnitOfWork, event: AuditEvent) -> Result<()> {
    NewAuditEntry::of(event).write(cx, uow).await
}

/// Writes an audit entry for a read of the audit log, into the stream of reads.
///
/// # Errors
/// Only those of the store.
pub async fn record_read(cx: &Context, uow: &mut dyn UnitOfWork, event: AuditEvent) -> Result<()> {
    let entry = NewAuditEntry {
        stream: AuditStream::Reads,
        ..NewAuditEntry::of(event)
    };
    entry.write(cx, uow).await
}

fn repository<R: Persisted>(uow: &mut dyn UnitOfWork) -> &mut dyn Repository<R> {
    R::repository(uow.repositories(RecordKey::new()))
}

/// Returns an internal error if the record belongs to a platform that the scope does not cover. That is a bug of the
/// caller.
fn ensure_covered<R: Audited>(scope: &impl Covers<R::Owner>, record: &R) -> Result<()> {
    match scope.covered_platform() {
        Some(covered) if record.audit_platform() != Some(covered) => Err(Error::Internal(format!(
            "a {} of another platform was about to be written",
            R::KIND
        ))),
        _ => Ok(()),
    }
}

/// Writes an entry to the audit log of the record's platform. A record without a platform uses that of the scope.
async fn write_entry<R: Audited>(
    cx: &Context,
    scope: &impl Covers<R::Owner>,
    uow: &mut dyn UnitOfWork,
    record: &R,
    action: &'static str,
    before: Option<JsonText>,
    after: Option<JsonText>,
) -> Result<()> {
    let entry = NewAuditEntry {
        stream: AuditStream::Changes,
        platform_id: record.audit_platform().or(scope.audit_platform()).cloned(),
        action,
        entity_id: record.key().to_owned(),
        before,
        after,
    };
    entry.write(cx, uow).await
}

struct NewAuditEntry {
    stream: AuditStream,
    platform_id: Option<PlatformId>,
    action: &'static str,
    entity_id: String,
    before: Option<JsonText>,
    after: Option<JsonText>,
}

impl NewAuditEntry {
    fn of(event: AuditEvent) -> Self {
        Self {
            stream: AuditStream::Changes,
            platform_id: event.platform_id,
            action: event.action,
            entity_id: event.entity_id,
            before: None,
            after: event.details.as_ref().map(JsonText::of),
        }
    }

    async fn write(self, cx: &Context, uow: &mut dyn UnitOfWork) -> Result<()> {
        let now = uow.now().await?;
        let entry = AuditEntry {
            id: AuditId::generate(now, cx.entropy.as_ref()),
            stream: self.stream,
            platform_id: self.platform_id,
            actor_id: cx.caller.actor_id().to_owned(),
            actor_type: cx.caller.kind().to_owned(),
            action: self.action.to_owned(),
            entity_type: first_segment(self.action).to_owned(),
            entity_id: self.entity_id,
            before: self.before,
            after: self.after,
            metadata: JsonText::of(&Metadata::of(cx)),
            created_at: now,
        };
        unaudited::append(uow, entry).await?;
        uow.effects().add(Effect::AuditWritten);
        Ok(())
    }
}

/// The request that caused an entry, and the credential of its caller.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'c> {
    request_id: &'c str,
    ip: Option<&'c str>,
    user_agent: Option<&'c str>,
    credential: Option<Credential<'c>>,
}

impl<'c> Metadata<'c> {
    fn of(cx: &'c Context) -> Self {
        Self {
            request_id: &cx.request.request_id,
            ip: cx.request.ip.as_deref(),
            user_agent: cx.request.user_agent.as_deref(),
            credential: cx.caller.credential(),
        }
    }
}
