//! Reading the audit. Reads are recorded in a stream of their own, so that no total moves under its reader; and in a unit of
//! their own, so that nobody who writes waits for a count.

use std::time::Duration;

use serde_json::json;

use super::{begin_read, platform_in_reach, record_read};
use crate::access::{PlatformScope, SignedInScope, authorize, unowned};
use crate::kernel::{
    AuditId, Context, Error, ListQuery, Page, PageRequest, PlatformId, Record, Result, Stored,
    Total, grant,
};
use crate::port::{Mode, Store, UnitOfWork, transact};
use crate::shared::{
    AuditChain, AuditEntry, AuditFilter, AuditHead, AuditOrder, AuditQuery, PlatformAuditFilter,
};

/// The audit of a platform, newest first.
///
/// # Errors
/// `INVALID_CURSOR`.
pub async fn list_of_platform(
    cx: &Context,
    scope: &PlatformScope<grant::AuditRead>,
    store: &dyn Store,
    query: &ListQuery<PlatformAuditFilter>,
) -> Result<Page<Stored<AuditEntry>>> {
    let mut entries: AuditQuery = query.filter.clone().into();
    entries.platform_id = Some(scope.id().clone());
    read_page(cx, store, &entries, query).await
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
    store: &dyn Store,
    query: &ListQuery<AuditFilter>,
) -> Result<Page<Stored<AuditEntry>>> {
    let mut entries: AuditQuery = query.filter.clone().into();
    let mut uow = store.begin(Mode::Read).await?;
    let wanted = entries.platform_id.as_ref();
    entries.platform_id = platform_in_reach::<grant::AuditRead>(cx, uow.as_mut(), wanted).await?;
    uow.rollback().await;
    read_page(cx, store, &entries, query).await
}

/// The audit of authentication and authorization, newest first: all of it for operators, that of a platform for whoever may
/// read it, and for everybody else what they did themselves.
///
/// # Errors
/// `NOT_FOUND` for a foreign platform; `FORBIDDEN` without `audit:read`; `PLATFORM_SUSPENDED`; `INVALID_CURSOR`.
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
                authorize::<grant::AuditRead>(cx, uow.as_mut(), platform).await?;
                uow.rollback().await;
            }
            None => entries.actor_id = Some(cx.caller.actor_id().to_owned()),
        }
    }
    read_page(cx, store, &entries, query).await
}

/// What the head of a chain knows of how many entries there are, so that nobody counts a million: those in all or of a
/// platform, and for every other list when to count again. Staged entries are not in it.
async fn known_total(uow: &mut dyn UnitOfWork, entries: &AuditQuery) -> Result<Total> {
    let platform = entries.platform_id.as_ref();
    let chain = platform.map_or_else(AuditChain::feed, |of| AuditChain::of(Some(of)));
    let head = unowned::<AuditHead>(uow).find(&chain).await?;
    let changes = head.map_or(0, |head| u64::try_from(head.changes).unwrap_or_default());
    let unfiltered = AuditQuery {
        platform_id: platform.cloned(),
        leaves_out_damaged: entries.leaves_out_damaged,
        ..AuditQuery::default()
    };
    Ok(if *entries == unfiltered {
        Total::Known(changes)
    } else {
        Total::AtVersion(changes)
    })
}

/// A page, and the entry that says who read it.
async fn read_page<F: Sync>(
    cx: &Context,
    store: &dyn Store,
    entries: &AuditQuery,
    query: &ListQuery<F>,
) -> Result<Page<Stored<AuditEntry>>> {
    let mut uow = store.begin(Mode::Read).await?;
    let request = PageRequest {
        total: known_total(uow.as_mut(), entries).await?,
        ..query.page()
    };
    let audit = unowned::<AuditEntry>(uow.as_mut());
    let page = audit.page(entries, &request).await?;
    uow.rollback().await;
    let platform = entries.platform_id.as_ref();
    record_entries(cx, store, platform, page.items.len()).await?;
    Ok(page)
}

/// One entry, for whoever finds it in a list.
///
/// # Errors
/// `NOT_FOUND` for an unknown or foreign one.
pub async fn get_event(
    cx: &Context,
    _: &SignedInScope,
    store: &dyn Store,
    id: &AuditId,
) -> Result<Stored<AuditEntry>> {
    let mut uow = store.begin(Mode::Read).await?;
    let entry = unowned::<AuditEntry>(uow.as_mut()).get(id).await?;
    let own = cx.caller.is_operator() || entry.actor_id == cx.caller.actor_id();
    if !own {
        let missing = || Error::NotFound(AuditEntry::KIND);
        let platform = entry.platform_id.clone().ok_or_else(missing)?;
        let reached = authorize::<grant::AuditRead>(cx, uow.as_mut(), &platform).await;
        reached.map_err(|error| match error {
            Error::Forbidden | Error::NotFound(_) => missing(),
            error => error,
        })?;
    }
    uow.rollback().await;
    record_entries(cx, store, entry.platform_id.as_ref(), 1).await?;
    Ok(entry)
}

/// Records that so many entries were read.
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

/// How many entries are read at once.
const PAGE: u32 = 1_000;

/// An export that has begun. Each page is a unit of work of its own, so that none is open while a page is being sent.
#[derive(Clone, Debug)]
pub struct AuditExport {
    entries: AuditQuery,
    is_over: bool,
}

/// Begins an export of what was committed until now, and records it; the filters are those of the list. An export of a past
/// time is the same whenever it is made.
///
/// # Errors
/// `NOT_FOUND` for a foreign platform; `FORBIDDEN` without `audit:read`; `PLATFORM_SUSPENDED`.
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
    // What is written while the export is sent would never let it end.
    let end = now.plus(Duration::from_millis(1));
    entries.to = Some(entries.to.map_or(end, |to| to.min(end)));
    entries.order = AuditOrder::OldestFirst(None);
    Ok(AuditExport {
        entries,
        is_over: false,
    })
}

impl AuditExport {
    /// The next page; none when there is no more.
    ///
    /// # Errors
    /// When the store failed.
    pub async fn next_page(&mut self, store: &dyn Store) -> Result<Vec<AuditEntry>> {
        if self.is_over {
            return Ok(Vec::new());
        }
        let mut uow = store.begin(Mode::Auto).await?;
        let entries = unowned::<AuditEntry>(uow.as_mut());
        let page = entries.list(&self.entries, PAGE).await?;
        self.is_over = page.len() < PAGE as usize;
        if let Some(last) = page.last() {
            let last = (last.created_at, last.id.clone());
            self.entries.order = AuditOrder::OldestFirst(Some(last));
        }
        Ok(page.into_iter().map(|entry| entry.into_inner()).collect())
    }
}
