//! The storage of uploads: uploads that no job needs any more, and the storage limit of a platform.

use std::time::Duration;

use crate::access::{Batches, PlatformAccess, SystemScope};
use crate::kernel::{Context, DeploymentId, Error, Result};
use crate::port::{SiteStorage, UnitOfWork};
use crate::registry::{Deployment, DeploymentQuery, DeploymentStatus};
use crate::use_case::registry::deployment;

/// The time for which the upload of a failed deployment is stored, so that an operator can retry it.
pub(super) const FAILED_UPLOAD_RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);

/// Returns the keys of uploads that no job needs, from a list of blob keys. Their deployments have ended, or were never
/// created because a process died between storing the upload and the commit. Pass only blobs that are so old that no
/// commit can be in progress.
///
/// # Errors
/// Only those of the store.
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

/// Returns whether an upload is still needed: its deployment has not ended, or failed within
/// [`FAILED_UPLOAD_RETENTION`].
async fn is_needed(uow: &mut dyn UnitOfWork, deployment: &DeploymentId) -> Result<bool> {
    let found = deployment::find_anywhere(SystemScope::new(), uow, deployment).await?;
    let Some(found) = found else {
        return Ok(false);
    };
    if found.status != DeploymentStatus::Failure {
        return Ok(!found.status.is_terminal());
    }
    let age = uow.now().await?.since(found.updated_at);
    Ok(age < FAILED_UPLOAD_RETENTION)
}

/// Refuses a site that would exceed the platform's storage limit, together with stored sites and pending uploads.
///
/// # Errors
/// `LIMIT_REACHED` if the sites would take more than the limit.
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
    let failed_since = uow.now().await?.minus(FAILED_UPLOAD_RETENTION);
    let mut waiting = Batches::<Deployment>::of(DeploymentQuery::WithStoredUpload { failed_since });
    while let Some(batch) = waiting.next(scope.records(uow)).await? {
        let sizes = batch.iter().filter_map(|deployment| deployment.total_bytes);
        for size in sizes {
            bytes = bytes.saturating_add(u64::try_from(size).unwrap_or_default());
        }
    }
    if bytes <= limit {
        return Ok(());
    }
    let message = "The platform's sites would exceed the storage limit. Deploy a smaller site, or try again after previews have expired.";
    Err(Error::limit_reached(limit, message))
}

/// The prefix of the blob keys of uploads.
pub(super) const BLOB_PREFIX: &str = "deploy-";

/// Returns the key of the blob that contains the upload of a deployment.
#[must_use]
pub fn blob_key(deployment: &DeploymentId) -> String {
    let text = deployment.as_str().to_ascii_lowercase();
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let text: String = text.chars().filter(|c| fits(*c)).take(100).collect();
    format!("{BLOB_PREFIX}{text}")
}
