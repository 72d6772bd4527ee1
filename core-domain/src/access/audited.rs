//! Changing records: the change and its audit entry in one call, so that there is no one without the other.

use serde::Serialize;
use serde_json::Value;

use super::records::Covers;
use super::records::RecordKey;
use super::unaudited;
use crate::kernel::{
    AuditId, Audited, Context, Credential, Effect, Error, JsonText, PlatformId, Result, Stored,
};
use crate::port::{Persisted, Repository, UnitOfWork};
use crate::shared::{AuditEntry, AuditStream, segment_of};

/// Adds a record.
///
/// # Errors
/// `CONFLICT` as [`Error::Store`] names the unique set that is taken.
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

/// Puts `next` in the place of `seen`, provided nobody changed it in between and the caller believes of it what is true
/// (`If-Match`). When nothing changed, nothing is written.
///
/// # Errors
/// `VERSION_CONFLICT`; `CONFLICT` when a unique set is taken, or when somebody was faster.
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

/// Removes a record, provided nobody changed it in between and the caller believes of it what is true.
///
/// # Errors
/// `VERSION_CONFLICT`; `CONFLICT` when somebody was faster.
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

/// Something that happened and changed no record by itself: a sign-in that failed, a plan that was asked for, a read of
/// the audit.
#[derive(Clone, Debug, Default)]
pub struct AuditEvent {
    /// The platform it belongs to, if any.
    pub platform_id: Option<PlatformId>,
    /// `thing.verb_in_past`; the kind of the thing is its first segment.
    pub action: &'static str,
    /// The id of the thing.
    pub entity_id: String,
    /// What is to be known of it, without secrets.
    pub details: Option<Value>,
}

/// Writes an entry of something that changed no record by itself.
///
/// # Errors
/// When the store failed.
pub async fn event(cx: &Context, uow: &mut dyn UnitOfWork, event: AuditEvent) -> Result<()> {
    Entry::of(event).write(cx, uow).await
}

/// Writes an entry of a read of the audit, into the stream of reads.
///
/// # Errors
/// When the store failed.
pub async fn read(cx: &Context, uow: &mut dyn UnitOfWork, event: AuditEvent) -> Result<()> {
    let entry = Entry {
        stream: AuditStream::Reads,
        ..Entry::of(event)
    };
    entry.write(cx, uow).await
}

fn repository<R: Persisted>(uow: &mut dyn UnitOfWork) -> &mut dyn Repository<R> {
    R::repository(uow.repositories(RecordKey::new()))
}

/// A record of another platform than the scope's is a mistake of ours, never the caller's.
fn ensure_covered<R: Audited>(scope: &impl Covers<R::Owner>, record: &R) -> Result<()> {
    match scope.covered_platform() {
        Some(covered) if record.audit_platform() != Some(covered) => Err(Error::Internal(format!(
            "a {} of another platform was about to be written",
            R::KIND
        ))),
        _ => Ok(()),
    }
}

/// Writes an entry in the audit of the record's platform; of the scope's, for a record that belongs to none.
async fn write_entry<R: Audited>(
    cx: &Context,
    scope: &impl Covers<R::Owner>,
    uow: &mut dyn UnitOfWork,
    record: &R,
    action: &'static str,
    before: Option<JsonText>,
    after: Option<JsonText>,
) -> Result<()> {
    let entry = Entry {
        stream: AuditStream::Changes,
        platform_id: record.audit_platform().or(scope.audit_platform()).cloned(),
        action,
        entity_id: record.key().to_owned(),
        before,
        after,
    };
    entry.write(cx, uow).await
}

struct Entry {
    stream: AuditStream,
    platform_id: Option<PlatformId>,
    action: &'static str,
    entity_id: String,
    before: Option<JsonText>,
    after: Option<JsonText>,
}

impl Entry {
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
            entity_type: segment_of(self.action).to_owned(),
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

/// The request behind an entry, and what its caller was known by.
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
