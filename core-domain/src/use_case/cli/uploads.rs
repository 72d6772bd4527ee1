//! The storage of uploads and plans: blobs that are no longer needed, and the storage limit of a platform.

use std::time::Duration;

use super::plan;
use crate::access::{Batches, PlatformAccess, SystemScope};
use crate::kernel::{Context, DeployPlanId, DeploymentId, Error, Result};
use crate::port::{SiteStorage, UnitOfWork};
use crate::registry::{Deployment, DeploymentQuery, DeploymentStatus};
use crate::use_case::registry::deployment;

/// The time for which the upload of a failed deployment is stored, so that an operator can retry it.
pub(super) const FAILED_UPLOAD_RETENTION: Duration = Duration::from_secs(7 * 24 * 3600);

/// Returns the keys of uploads and plans that are no longer needed, from a list of blob keys. Their deployments have ended, or were never
/// created because a process died between storing the upload and the commit. Pass only blobs that are so old that no
/// commit can be in progress.
///
/// # Errors
/// Only those of the store.
pub async fn orphaned_uploads(uow: &mut dyn UnitOfWork, blobs: Vec<String>) -> Result<Vec<String>> {
    let mut orphaned = Vec::new();
    for key in blobs {
        let is_orphaned = if let Some(id) = key.strip_prefix(PLAN_PREFIX) {
            match DeployPlanId::parse(id) {
                Some(id) => !plan::exists(uow, &id).await?,
                None => false,
            }
        } else if let Some(name) = key.strip_prefix(BLOB_PREFIX) {
            let id = name.strip_suffix(MANIFEST_SUFFIX).unwrap_or(name);
            match DeploymentId::parse(id) {
                Some(id) => !is_needed(uow, &id).await?,
                None => false,
            }
        } else {
            false
        };
        if is_orphaned {
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

/// The prefix of the blob keys of uploads and of their lists of files.
const BLOB_PREFIX: &str = "deploy-";

/// The suffix of the blob keys of lists of files.
const MANIFEST_SUFFIX: &str = "-files";

/// The prefix of the blob keys of plans.
const PLAN_PREFIX: &str = "plan-";

/// Returns the key of the blob that contains the upload of a deployment.
#[must_use]
pub fn blob_key(deployment: &DeploymentId) -> String {
    format!("{BLOB_PREFIX}{}", key_part(deployment.as_str()))
}

/// Returns the key of the blob that lists the files of a planned deployment, see [`SiteManifest`](crate::cli::SiteManifest).
#[must_use]
pub fn manifest_key(deployment: &DeploymentId) -> String {
    format!("{}{MANIFEST_SUFFIX}", blob_key(deployment))
}

/// Returns the key of the blob that lists the files of a plan, see [`SiteManifest`](crate::cli::SiteManifest).
#[must_use]
pub fn plan_key(plan: &DeployPlanId) -> String {
    format!("{PLAN_PREFIX}{}", key_part(plan.as_str()))
}

/// Returns an id in the characters of a blob key.
fn key_part(id: &str) -> String {
    let fits = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let id = id.to_ascii_lowercase();
    id.chars().filter(fits).take(100).collect()
}
