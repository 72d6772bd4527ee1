//! Exporting the audit: every entry that matches, oldest first, a page at a time.

use std::time::Duration;

use serde_json::json;

use super::begin_read;
use crate::access::{SignedInScope, unowned};
use crate::kernel::{Context, Result};
use crate::port::{Mode, Store};
use crate::shared::{AuditEntry, AuditFilter, AuditOrder, AuditQuery};

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
