//! The audit: lists and exports of it, the chains its entries are sealed in, and the feed of the changes it tells.

mod checkpoint;
mod feed;
mod read;
mod verify;
mod verify_installation;
mod verify_report;

use std::collections::BTreeSet;

pub use checkpoint::list as list_checkpoints;
pub use feed::{ChangeFeed, FeedQuery, open as open_feed};
pub use read::{AuditExport, export, get_event, list, list_events, list_of_platform};
pub use verify::{VerifyQuery, verify};
pub use verify_report::{ChainEnd, InstallationReport, Problem, ProblemKind, VerifyReport};

use serde_json::Value;

use crate::access::{AuditEvent, audited, authorize};
use crate::kernel::{
    AuditId, Context, Error, Grant, PlatformId, Record, Result, StoreError, grant,
};
use crate::port::{Store, UnitOfWork, transact};
use crate::registry::Platform;

/// The platform whose part of the audit a caller is shown: for operators the one they name, or none for all there is; for
/// everybody else the one they name or act for, provided they may `G` there.
async fn platform_in_reach<G: Grant>(
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

/// As [`platform_in_reach`], in a unit of its own that records the read, for what is then read in many units.
async fn begin_read(
    cx: &Context,
    store: &dyn Store,
    wanted: Option<&PlatformId>,
    details: Value,
) -> Result<Option<PlatformId>> {
    let details = &details;
    transact(store, |uow, _| {
        Box::pin(async move {
            let platform = platform_in_reach::<grant::AuditRead>(cx, uow, wanted).await?;
            record_read(cx, uow, platform.as_ref(), details.clone()).await?;
            Ok(platform)
        })
    })
    .await
}

/// Records that the audit was read.
async fn record_read(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: Option<&PlatformId>,
    details: Value,
) -> Result<()> {
    let event = AuditEvent {
        platform_id: platform.cloned(),
        action: "audit.read",
        entity_id: platform.map_or_else(|| "all".to_owned(), ToString::to_string),
        details: Some(details),
    };
    audited::read(cx, uow, event).await
}

/// The keys of rows that cannot be decoded, and are read around.
type Unreadable = BTreeSet<String>;

/// Those of the ids that can be read.
fn readable<'a>(
    ids: impl Iterator<Item = &'a AuditId>,
    unreadable: &'a Unreadable,
) -> Vec<&'a str> {
    ids.map(AuditId::as_str)
        .filter(|id| !unreadable.contains(*id))
        .collect()
}

/// Notes the row because of which a read failed; tells whether it makes sense to read again.
fn reads_around(error: &Error, unreadable: &mut Unreadable) -> bool {
    match error {
        Error::Store(StoreError::Corrupt { key, .. }) => unreadable.insert(key.clone()),
        _ => false,
    }
}
