//! The audit log: lists and exports its entries, verifies the hash chains in which they are sealed, and reads the feed
//! of changes.

mod checkpoint;
mod feed;
mod read;
mod verify;
mod verify_installation;
mod verify_report;

use std::collections::BTreeSet;

pub use checkpoint::list as list_checkpoints;
pub(in crate::use_case) use feed::changes_after;
pub use feed::{ChangeFeed, FeedQuery, open as open_feed};
pub use read::{AuditExport, export, get_event, list, list_events, list_of_platform};
pub use verify::{VerifyQuery, newest_archive_of, verify};
pub use verify_report::{ChainEnd, InstallationReport, Problem, ProblemKind, VerifyReport};

use serde_json::Value;

use crate::access::{AuditEvent, audited, authorize, unowned_records};
use crate::kernel::{
    AuditId, Context, Error, PermissionType, PlatformId, Record, Result, StoreError, permission,
};
use crate::port::{Store, UnitOfWork, transact};
use crate::registry::Platform;
use crate::shared::{AuditChain, AuditHead};

/// Returns the platform whose audit entries the caller may read.
///
/// For operators it is the requested platform; `None` means all entries. For other callers it is the requested platform
/// or the one they act for. They need the permission `G` there.
async fn platform_in_reach<G: PermissionType>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    wanted: Option<&PlatformId>,
) -> Result<Option<PlatformId>> {
    if cx.caller.is_operator() {
        return Ok(wanted.cloned());
    }
    let wanted = wanted.or(cx.caller.platform_id());
    let wanted = wanted.ok_or(Error::NotFound(Platform::KIND))?;
    authorize::<G>(cx, uow, wanted).await?;
    Ok(Some(wanted.clone()))
}

/// Like [`platform_in_reach`], in a separate unit of work that also records the read access. For reads that take
/// several units of work.
async fn begin_read(
    cx: &Context,
    store: &dyn Store,
    wanted: Option<&PlatformId>,
    details: Value,
) -> Result<Option<PlatformId>> {
    let details = &details;
    transact(store, |uow, _| {
        Box::pin(async move {
            let platform = platform_in_reach::<permission::AuditRead>(cx, uow, wanted).await?;
            record_read(cx, uow, platform.as_ref(), details.clone()).await?;
            Ok(platform)
        })
    })
    .await
}

/// Records read access to the audit log. An operator can ask for a platform that never existed: that is recorded in the log of
/// the installation, so that it creates no log.
async fn record_read(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: Option<&PlatformId>,
    details: Value,
) -> Result<()> {
    let platform_id = match platform {
        Some(platform) if has_log(uow, platform).await? => Some(platform.clone()),
        _ => None,
    };
    let event = AuditEvent {
        platform_id,
        action: "audit.read",
        entity_id: platform.map_or_else(|| "all".to_owned(), ToString::to_string),
        details: Some(details),
    };
    audited::record_read(cx, uow, event).await
}

/// Returns whether the platform exists, or has existed and has a log.
async fn has_log(uow: &mut dyn UnitOfWork, platform: &PlatformId) -> Result<bool> {
    let existing = unowned_records::<Platform>(uow).find(platform).await?;
    if existing.is_some() {
        return Ok(true);
    }
    let chain = AuditChain::of(Some(platform));
    let head = unowned_records::<AuditHead>(uow).find(&chain).await?;
    Ok(head.is_some())
}

/// The keys of rows that cannot be decoded and are skipped.
type Unreadable = BTreeSet<String>;

/// Returns the ids without the unreadable ones.
fn readable<'a>(
    ids: impl Iterator<Item = &'a AuditId>,
    unreadable: &'a Unreadable,
) -> Vec<&'a str> {
    ids.map(AuditId::as_str)
        .filter(|id| !unreadable.contains(*id))
        .collect()
}

/// Adds the row that caused a read error to `unreadable`. Returns whether reading again without this row makes sense.
fn skip_unreadable(error: &Error, unreadable: &mut Unreadable) -> bool {
    match error {
        Error::Store(StoreError::Corrupt { key, .. }) => unreadable.insert(key.clone()),
        _ => false,
    }
}
