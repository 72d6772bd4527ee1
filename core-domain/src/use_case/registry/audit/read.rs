//! Reads the audit log.
//!
//! Read access is recorded in a separate stream, so that it does not change the totals of the list. It is recorded in a
//! separate unit of work, so that writers do not wait for a count.

use std::time::Duration;

use serde_json::json;

use super::{begin_read, platform_in_reach, record_read};
use crate::access::{PlatformScope, SignedInScope, authorize, unowned_records};
use crate::kernel::{
    AuditId, Context, Error, ListQuery, ListVersion, Page, PageQuery, PlatformId, Record, Result,
    Stored, Total, permission,
};
use crate::port::{Mode, Store, UnitOfWork, transact};
use crate::shared::{
    AuditChain, AuditEntry, AuditFilter, AuditHead, AuditOrder, AuditQuery, PlatformAuditFilter,
};

/// Lists the audit entries of a platform, newest first.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn list_of_platform(
    cx: &Context,
    scope: &PlatformScope<permission::AuditRead>,
    store: &dyn Store,
    query: &ListQuery<PlatformAuditFilter>,
) -> Result<Page<Stored<AuditEntry>>> {
    let mut entries: AuditQuery = query.filter.clone().into();
    entries.platform_id = Some(scope.id().clone());
    read_page(cx, store, &entries, query).await
}

/// Lists audit entries across platforms, newest first. Callers who are not operators see only one platform. The entries
/// of a platform are kept after the platform is removed.
///
/// # Errors
/// - `NOT_FOUND` if the platform does not exist or belongs to another tenant.
/// - `FORBIDDEN` without the permission `audit:read`.
/// - `PLATFORM_SUSPENDED` if the platform is suspended.
/// - `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn list(
    cx: &Context,
    _: &SignedInScope,
    store: &dyn Store,
    query: &ListQuery<AuditFilter>,
) -> Result<Page<Stored<AuditEntry>>> {
    let mut entries: AuditQuery = query.filter.clone().into();
    let mut uow = store.begin(Mode::Read).await?;
    let wanted = entries.platform_id.as_ref();
    entries.platform_id =
        platform_in_reach::<permission::AuditRead>(cx, uow.as_mut(), wanted).await?;
    uow.rollback().await;
    read_page(cx, store, &entries, query).await
}

/// Lists audit entries of authentication and authorization, newest first. Operators see all entries. Other callers see
/// the entries of a platform if they may read them there, otherwise the entries of their own actions.
///
/// # Errors
/// - `NOT_FOUND` if the platform does not exist or belongs to another tenant.
/// - `FORBIDDEN` without the permission `audit:read`.
/// - `PLATFORM_SUSPENDED` if the platform is suspended.
/// - `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn list_events(
    cx: &Context,
    _: &SignedInScope,
    store: &dyn Store,
    query: &ListQuery<AuditFilter>,
) -> Result<Page<Stored<AuditEntry>>> {
    let mut entries: AuditQuery = query.filter.clone().into();
    if !cx.caller.is_operator() {
        match &entries.platform_id {
            Some(platform) => {
                let mut uow = store.begin(Mode::Read).await?;
                authorize::<permission::AuditRead>(cx, uow.as_mut(), platform).await?;
                uow.rollback().await;
            }
            None => entries.actor_id = Some(cx.caller.actor_id().to_owned()),
        }
    }
    read_page(cx, store, &entries, query).await
}

/// Returns the number of entries from the head of a chain, which avoids counting rows.
///
/// For an unfiltered list it is the total. For a filtered list it is the version of the unfiltered list. Staged entries
/// are not included.
async fn known_total(uow: &mut dyn UnitOfWork, entries: &AuditQuery) -> Result<Total> {
    let platform = entries.platform_id.as_ref();
    let chain = platform.map_or_else(AuditChain::feed, |of| AuditChain::of(Some(of)));
    let head = unowned_records::<AuditHead>(uow).find(&chain).await?;
    let unfiltered = AuditQuery {
        platform_id: platform.cloned(),
        skip_damaged: entries.skip_damaged,
        ..AuditQuery::default()
    };
    Ok(if *entries == unfiltered {
        Total::Known(head.map_or(0, |head| head.remaining_changes()))
    } else {
        Total::AtVersion(head.map_or_else(ListVersion::default, |head| head.list_version()))
    })
}

/// Reads a page and records the read access.
async fn read_page<F: Sync>(
    cx: &Context,
    store: &dyn Store,
    entries: &AuditQuery,
    query: &ListQuery<F>,
) -> Result<Page<Stored<AuditEntry>>> {
    let mut uow = store.begin(Mode::Read).await?;
    let request = PageQuery {
        total: known_total(uow.as_mut(), entries).await?,
        ..query.page()
    };
    let audit = unowned_records::<AuditEntry>(uow.as_mut());
    let page = audit.page(entries, &request).await?;
    uow.rollback().await;
    let platform = entries.platform_id.as_ref();
    record_entries(cx, store, platform, page.items.len()).await?;
    Ok(page)
}

/// Returns an audit entry, if the caller can see it in one of the lists.
///
/// # Errors
/// `NOT_FOUND` if the entry does not exist or the caller may not read it.
pub async fn get_event(
    cx: &Context,
    _: &SignedInScope,
    store: &dyn Store,
    id: &AuditId,
) -> Result<Stored<AuditEntry>> {
    let mut uow = store.begin(Mode::Read).await?;
    let entry = unowned_records::<AuditEntry>(uow.as_mut()).get(id).await?;
    let own = cx.caller.is_operator() || entry.actor_id == cx.caller.actor_id();
    if !own {
        let missing = || Error::NotFound(AuditEntry::KIND);
        let platform = entry.platform_id.clone().ok_or_else(missing)?;
        let reached = authorize::<permission::AuditRead>(cx, uow.as_mut(), &platform).await;
        reached.map_err(|error| match error {
            Error::Forbidden | Error::NotFound(_) => missing(),
            error => error,
        })?;
    }
    uow.rollback().await;
    record_entries(cx, store, entry.platform_id.as_ref(), 1).await?;
    Ok(entry)
}

/// Records read access to this number of entries.
async fn record_entries(
    cx: &Context,
    store: &dyn Store,
    platform: Option<&PlatformId>,
    entries: usize,
) -> Result<()> {
    transact(store, |uow, _| {
        Box::pin(record_read(
            cx,
            uow,
            platform,
            json!({ "entries": entries }),
        ))
    })
    .await
}

/// Number of entries per page of an export.
const PAGE: u32 = 1_000;

/// An export in progress. Each page is read in a separate unit of work, so that no unit of work is open while a page is
/// sent.
#[derive(Clone, Debug)]
pub struct AuditExport {
    entries: AuditQuery,
    is_finished: bool,
}

/// Starts an export of the entries that are committed now, and records the read access. The filters are those of the
/// list. Exports of the same period in the past have the same content.
///
/// # Errors
/// - `NOT_FOUND` if the platform does not exist or belongs to another tenant.
/// - `FORBIDDEN` without the permission `audit:read`.
/// - `PLATFORM_SUSPENDED` if the platform is suspended.
pub async fn export(
    cx: &Context,
    _: &SignedInScope,
    store: &dyn Store,
    filter: AuditFilter,
) -> Result<AuditExport> {
    let mut entries: AuditQuery = filter.into();
    let wanted = entries.platform_id.as_ref();
    entries.platform_id = begin_read(cx, store, wanted, json!({ "exported": true })).await?;
    let now = store.begin(Mode::Auto).await?.now().await?;
    // Without this limit, entries that are written during the export could extend it forever.
    let end = now.plus(Duration::from_millis(1));
    entries.to = Some(entries.to.map_or(end, |to| to.min(end)));
    entries.order = AuditOrder::OldestFirst(None);
    Ok(AuditExport {
        entries,
        is_finished: false,
    })
}

impl AuditExport {
    /// Returns the next page; an empty page means the end.
    ///
    /// # Errors
    /// Only those of the store.
    pub async fn next_page(&mut self, store: &dyn Store) -> Result<Vec<AuditEntry>> {
        if self.is_finished {
            return Ok(Vec::new());
        }
        let mut uow = store.begin(Mode::Auto).await?;
        let entries = unowned_records::<AuditEntry>(uow.as_mut());
        let page = entries.list(&self.entries, PAGE).await?;
        self.is_finished = page.len() < PAGE as usize;
        if let Some(last) = page.last() {
            self.entries.order = AuditOrder::OldestFirst(Some(last.id.clone()));
        }
        Ok(page.into_iter().map(|entry| entry.into_inner()).collect())
    }
}
