//! Uploads that no job needs any more.

use std::time::Duration;

use super::deploy::BLOB_PREFIX;
use crate::access::{Batches, PlatformAccess, SystemScope};
use crate::kernel::{Context, DeploymentId, Error, Result};
use crate::port::{SiteStorage, UnitOfWork};
use crate::registry::{Deployment, DeploymentQuery, DeploymentStatus};
use crate::use_case::registry::deployment;

/// How long the upload of a failed deployment is kept for an operator's retry.
pub(super) const KEPT_AFTER_FAILURE: Duration = Duration::from_secs(7 * 24 * 3600);

/// Of these blobs, those that are uploads no job will ask for: of deployments that have ended, or that were never made
/// because a process died between keeping the upload and the commit. Ask only about blobs so old that no commit is
/// under way.
///
/// # Errors
/// When the store failed.
pub async fn orphaned_uploads(uow: &mut dyn UnitOfWork, blobs: Vec<String>) -> Result<Vec<String>> {
    let mut orphaned = Vec::new();
    for key in blobs {
        let Some(id) = key.strip_prefix(BLOB_PREFIX).and_then(DeploymentId::parse) else {
            continue;
        };
        if !is_needed(uow, &id).await? {
            orphaned.push(key);
        }
    }
    Ok(orphaned)
}

async fn is_needed(uow: &mut dyn UnitOfWork, deployment: &DeploymentId) -> Result<bool> {
    let found = deployment::find_anywhere(SystemScope::new(), uow, deployment).await?;
    let Some(found) = found else {
        return Ok(false);
    };
    if found.status != DeploymentStatus::Failure {
        return Ok(!found.status.is_terminal());
    }
    let age = uow.now().await?.since(found.updated_at);
    Ok(age < KEPT_AFTER_FAILURE)
}

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
