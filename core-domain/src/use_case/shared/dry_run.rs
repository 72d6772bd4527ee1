//! Requests that ask what would happen (`dryRun`).

use crate::access::{AuditEvent, audited};
use crate::kernel::{Context, Result};
use crate::port::UnitOfWork;

/// Keeps that somebody asked what would happen, and nothing of what was done to find out: that unit was undone.
///
/// # Errors
/// When the store fails.
pub async fn record_dry_run(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    event: &AuditEvent,
) -> Result<()> {
    audited::event(cx, uow, event.clone()).await
}
