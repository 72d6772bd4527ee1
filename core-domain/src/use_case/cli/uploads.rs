//! Uploads that no job needs any more.

use std::time::Duration;

use super::deploy_input::BLOB_PREFIX;
use crate::access::SystemScope;
use crate::kernel::{DeploymentId, Result};
use crate::port::UnitOfWork;
use crate::registry::DeploymentStatus;
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
