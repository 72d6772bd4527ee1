//! Records of dry runs (`dryRun`).

use crate::access::{AuditEvent, audited};
use crate::kernel::{Context, Result};
use crate::port::UnitOfWork;

/// Records a dry run in the audit log. The dry run itself was rolled back, so this is its only change.
///
/// # Errors
/// Only those of the store.
pub async fn record_dry_run(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    event: &AuditEvent,
) -> Result<()> {
    audited::record_event(cx, uow, event.clone()).await
}
