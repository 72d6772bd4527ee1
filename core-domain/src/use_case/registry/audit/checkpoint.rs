//! Lists signed checkpoints of the audit log.

use super::platform_in_reach;
use crate::access::{SignedInScope, unowned_records};
use crate::kernel::{Context, ListQuery, Page, Result, Stored, permission};
use crate::port::UnitOfWork;
use crate::shared::{AuditCheckpoint, AuditCheckpointFilter, AuditCheckpointQuery};

/// Lists the checkpoints of the hash chains, newest first. Operators see all chains, other callers the chain of one
/// platform.
///
/// # Errors
/// - `NOT_FOUND` if the platform does not exist or belongs to another tenant.
/// - `FORBIDDEN` without the permission `audit:read`.
/// - `PLATFORM_SUSPENDED` if the platform is suspended.
/// - `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn list(
    cx: &Context,
    _: &SignedInScope,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<AuditCheckpointFilter>,
) -> Result<Page<Stored<AuditCheckpoint>>> {
    let wanted = query.filter.platform_id.as_ref();
    let platform = platform_in_reach::<permission::AuditRead>(cx, uow, wanted).await?;
    let newest = AuditCheckpointQuery::Newest(platform);
    unowned_records::<AuditCheckpoint>(uow)
        .page(&newest, &query.page())
        .await
}
