//! Uploads that nobody needs.

use super::deploy::BLOB_PREFIX;
use crate::kernel::{DeploymentId, Result};
use crate::port::UnitOfWork;
use crate::use_case::registry::look_up_deployment;

/// Of these blobs, those that are uploads of deployments that have ended or were never made: a process can die between
/// keeping an upload and the commit of its deployment. Ask only about blobs so old that no commit is under way.
///
/// # Errors
/// When the store failed.
pub async fn uploads_nobody_needs(
    uow: &mut dyn UnitOfWork,
    blobs: Vec<String>,
) -> Result<Vec<String>> {
    let mut unneeded = Vec::new();
    for key in blobs {
        let Some(id) = key.strip_prefix(BLOB_PREFIX).and_then(DeploymentId::parse) else {
            continue;
        };
        let deployment = look_up_deployment(uow, &id).await?;
        if deployment.is_none_or(|deployment| deployment.status.is_terminal()) {
            unneeded.push(key);
        }
    }
    Ok(unneeded)
}
