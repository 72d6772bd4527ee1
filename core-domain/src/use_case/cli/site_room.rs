//! The limit on the bytes of a platform's sites.

use super::uploads::KEPT_AFTER_FAILURE;
use crate::access::{Batches, PlatformAccess};
use crate::kernel::{Context, Error, Result};
use crate::port::{SiteStorage, UnitOfWork};
use crate::registry::{Deployment, DeploymentQuery};

/// Refuses a site that would exceed the platform's bytes, together with stored sites and pending uploads.
///
/// # Errors
/// `LIMIT_REACHED`.
pub(super) async fn ensure_room(
    cx: &Context,
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    storage: &SiteStorage,
) -> Result<()> {
    let limit = cx.limits.site_bytes_per_platform;
    if limit == u64::MAX {
        return Ok(());
    }
    let mut bytes = storage.stored_bytes.saturating_add(storage.new_bytes);
    let failed_since = uow.now().await?.minus(KEPT_AFTER_FAILURE);
    let mut waiting = Batches::<Deployment>::of(DeploymentQuery::HoldingUploads { failed_since });
    while let Some(batch) = waiting.next(scope.records(uow)).await? {
        let sizes = batch.iter().filter_map(|deployment| deployment.total_bytes);
        for size in sizes {
            bytes = bytes.saturating_add(u64::try_from(size).unwrap_or_default());
        }
    }
    if bytes <= limit {
        return Ok(());
    }
    let message = "The sites of the platform would take more bytes than they may. Deploy a smaller site, or try again when previews have expired.";
    Err(Error::limit_reached(limit, message))
}
