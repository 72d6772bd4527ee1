//! Reading the audit. Reads are recorded in a stream of their own, so that no total moves under its reader.

use super::{platform_in_reach, record_entries_read};
use crate::access::{PlatformScope, SignedInScope, authorize, unowned};
use crate::kernel::{AuditId, Context, Error, ListQuery, Page, Record, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::shared::{AuditEntry, AuditFilter, AuditQuery, PlatformAuditFilter};

/// The audit of a platform, newest first.
///
/// # Errors
/// `INVALID_CURSOR`.
pub async fn list_of_platform(
    cx: &Context,
    scope: &PlatformScope<grant::AuditRead>,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<PlatformAuditFilter>,
) -> Result<Page<Stored<AuditEntry>>> {
    let mut entries: AuditQuery = query.filter.clone().into();
    entries.platform_id = Some(scope.id().clone());
    let page = unowned::<AuditEntry>(uow)
        .page(&entries, &query.page())
        .await?;
    record_entries_read(cx, uow, Some(scope.id()), page.items.len()).await?;
    Ok(page)
}

/// The audit across platforms, newest first. Whoever is no operator sees the platform they act for alone. What happened
/// to a platform is kept when the platform is gone.
///
/// # Errors
/// `NOT_FOUND` for a foreign platform; `FORBIDDEN` without `audit:read`; `PLATFORM_SUSPENDED`;
/// `INVALID_CURSOR`.
pub async fn list(
    cx: &Context,
    _: &SignedInScope,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<AuditFilter>,
) -> Result<Page<Stored<AuditEntry>>> {
    let mut entries: AuditQuery = query.filter.clone().into();
    let wanted = entries.platform_id.as_ref();
    entries.platform_id = platform_in_reach::<grant::AuditRead>(cx, uow, wanted).await?;
    read_page(cx, uow, &entries, query).await
}

/// The audit of authentication and authorization, newest first: all of it for operators, that of a platform for whoever may
/// read it, and for everybody else what they did themselves.
///
/// # Errors
/// `NOT_FOUND` for a foreign platform; `FORBIDDEN` without `audit:read`; `PLATFORM_SUSPENDED`; `INVALID_CURSOR`.
pub async fn list_events(
    cx: &Context,
    _: &SignedInScope,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<AuditFilter>,
) -> Result<Page<Stored<AuditEntry>>> {
    let mut entries: AuditQuery = query.filter.clone().into();
    if !cx.caller.is_operator() {
        match &entries.platform_id {
            Some(platform) => {
                authorize::<grant::AuditRead>(cx, uow, platform).await?;
            }
            None => entries.actor_id = Some(cx.caller.actor_id().to_owned()),
        }
    }
    read_page(cx, uow, &entries, query).await
}

/// A page, and the entry that says who read it.
async fn read_page(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    entries: &AuditQuery,
    query: &ListQuery<AuditFilter>,
) -> Result<Page<Stored<AuditEntry>>> {
    let page = unowned::<AuditEntry>(uow)
        .page(entries, &query.page())
        .await?;
    record_entries_read(cx, uow, entries.platform_id.as_ref(), page.items.len()).await?;
    Ok(page)
}

/// One entry, for whoever finds it in a list.
///
/// # Errors
/// `NOT_FOUND` for an unknown or foreign one.
pub async fn get_event(
    cx: &Context,
    _: &SignedInScope,
    uow: &mut dyn UnitOfWork,
    id: &AuditId,
) -> Result<Stored<AuditEntry>> {
    let entry = unowned::<AuditEntry>(uow).get(id).await?;
    let own = cx.caller.is_operator() || entry.actor_id == cx.caller.actor_id();
    if !own {
        let missing = || Error::NotFound(AuditEntry::KIND);
        let platform = entry.platform_id.clone().ok_or_else(missing)?;
        let reached = authorize::<grant::AuditRead>(cx, uow, &platform).await;
        reached.map_err(|error| match error {
            Error::Forbidden | Error::NotFound(_) => missing(),
            error => error,
        })?;
    }
    record_entries_read(cx, uow, entry.platform_id.as_ref(), 1).await?;
    Ok(entry)
}
