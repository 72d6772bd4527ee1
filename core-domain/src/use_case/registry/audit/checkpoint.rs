//! Reading checkpoints.

use super::platform_in_reach;
use crate::access::{SignedInScope, unowned};
use crate::kernel::{Context, ListQuery, Page, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::shared::{AuditCheckpoint, AuditCheckpointFilter, AuditCheckpointQuery};

/// The checkpoints of the chains, newest first: of all for operators, of the chain of one platform for others.
///
/// # Errors
/// `NOT_FOUND` for a foreign platform; `FORBIDDEN` without `audit:read`; `PLATFORM_SUSPENDED`; `INVALID_CURSOR`.
pub async fn list(
    cx: &Context,
    _: &SignedInScope,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<AuditCheckpointFilter>,
) -> Result<Page<Stored<AuditCheckpoint>>> {
    let wanted = query.filter.platform_id.as_ref();
    let platform = platform_in_reach::<grant::AuditRead>(cx, uow, wanted).await?;
    let newest = AuditCheckpointQuery::Newest(platform);
    unowned::<AuditCheckpoint>(uow)
        .page(&newest, &query.page())
        .await
}
