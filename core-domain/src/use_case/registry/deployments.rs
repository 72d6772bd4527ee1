//! Deployment records. The command line's service makes them; its jobs move them.

use std::time::Duration;

use serde_json::{Value, json};

use super::access::reach;
use crate::kernel::{
    Code, Context, DeploymentId, Error, JobId, Permission, PlatformId, Result, Timestamp,
};
use crate::port::{Record, StoreError, Stored, UnitOfWork};
use crate::registry::{Deployment, DeploymentChange, DeploymentQuery, DeploymentStatus};
use crate::shared::{Happening, audited};

/// How many rows are read at once.
const BATCH: u32 = 100;

/// What a new deployment record is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDeployment {
    /// The deployment's id.
    pub id: DeploymentId,
    /// What makes a second request the same deployment.
    pub idempotency_key: String,
    /// The platform.
    pub platform_id: PlatformId,
    /// Who deploys.
    pub user_id: String,
    /// The pages project.
    pub project_name: String,
    /// The branch.
    pub branch: String,
    /// How many files it has.
    pub file_count: i64,
    /// How large they are in all.
    pub total_bytes: i64,
    /// SHA-256 of what was uploaded, in hex.
    pub content_hash: String,
    /// The job that works on it.
    pub job_id: JobId,
}

/// Enters a deployment as `queued`. Asks nobody for permission.
///
/// # Errors
/// `IDEMPOTENCY_KEY_REUSED` when another deployment of the platform has the key.
pub async fn create_deployment(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    new: NewDeployment,
) -> Result<Stored<Deployment>> {
    let now = uow.now().await?;
    let deployment = Deployment {
        id: new.id,
        idempotency_key: new.idempotency_key,
        platform_id: new.platform_id,
        user_id: new.user_id,
        cf_deployment_id: None,
        project_name: new.project_name,
        branch: new.branch,
        url: None,
        error_message: None,
        status: DeploymentStatus::Queued,
        file_count: Some(new.file_count),
        total_bytes: Some(new.total_bytes),
        started_at: None,
        completed_at: None,
        created_at: now,
        updated_at: now,
        content_hash: Some(new.content_hash),
        job_id: Some(new.job_id),
    };
    let stored = match uow.deployments().insert(deployment).await {
        Err(StoreError::Conflict {
            index: "idempotency_key",
            ..
        }) => return Err(key_reused()),
        outcome => outcome?,
    };
    let after = Some(picture(&stored));
    audit(cx, uow, &stored, "deployment.created", None, after).await?;
    Ok(stored)
}

/// The refusal of a key that belongs to another deployment of the platform.
pub(in crate::use_case) fn key_reused() -> Error {
    Error::refused(
        Code::IdempotencyKeyReused,
        "This idempotency key was used with another deployment.",
    )
}

/// Changes a deployment. Asks nobody for permission; a change that changes nothing leaves all as it is.
///
/// # Errors
/// `NOT_FOUND`; `INVALID_STATE` for one that has ended.
pub async fn change_deployment(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    deployment: &DeploymentId,
    change: &DeploymentChange,
) -> Result<Stored<Deployment>> {
    let seen = uow.deployments().get(deployment.as_str()).await?;
    let seen = seen.ok_or(Error::NotFound(Deployment::KIND))?;
    let next = seen.after(change, uow.now().await?)?;
    if next == *seen {
        return Ok(seen);
    }
    let stored = uow.deployments().replace(&seen, next).await?;
    let action = match stored.status {
        status if status == seen.status => "deployment.updated",
        DeploymentStatus::Queued => "deployment.queued",
        DeploymentStatus::Uploading => "deployment.started",
        DeploymentStatus::Deploying => "deployment.uploaded",
        DeploymentStatus::Active => "deployment.activated",
        DeploymentStatus::Failure => "deployment.failed",
        DeploymentStatus::Canceled => "deployment.canceled",
    };
    let (before, after) = (Some(picture(&seen)), Some(picture(&stored)));
    audit(cx, uow, &stored, action, before, after).await?;
    Ok(stored)
}

/// Calls off every deployment of a platform that has not ended. Asks nobody for permission.
pub(super) async fn cancel_deployments(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    why: &str,
) -> Result<()> {
    let change = DeploymentChange {
        status: Some(DeploymentStatus::Canceled),
        error_message: Some(why.to_owned()),
        ..DeploymentChange::default()
    };
    let open = DeploymentQuery::OfPlatform {
        platform_id: platform.clone(),
        in_flight: true,
    };
    loop {
        let batch = uow.deployments().list(&open, BATCH).await?;
        if batch.is_empty() {
            return Ok(());
        }
        for deployment in batch {
            change_deployment(cx, uow, &deployment.id, &change).await?;
        }
    }
}

/// A deployment of a platform.
///
/// # Errors
/// As [`reach`] with `deployment:read`; `NOT_FOUND`.
pub async fn find_deployment(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    deployment: &DeploymentId,
) -> Result<Stored<Deployment>> {
    reach(cx, uow, Permission::DeploymentRead, platform).await?;
    let found = uow.deployments().get(deployment.as_str()).await?;
    found
        .filter(|d| d.platform_id == *platform)
        .ok_or(Error::NotFound(Deployment::KIND))
}

/// A deployment, whoever's it is. Asks nobody for permission.
///
/// # Errors
/// When the store failed.
pub async fn look_up_deployment(
    uow: &mut dyn UnitOfWork,
    deployment: &DeploymentId,
) -> Result<Option<Stored<Deployment>>> {
    Ok(uow.deployments().get(deployment.as_str()).await?)
}

/// What is known of a deployment that is about to be asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct EarlierDeployments {
    /// The one with the same key.
    pub with_key: Option<Stored<Deployment>>,
    /// One of the same branch that has not ended.
    pub in_flight: Option<Stored<Deployment>>,
    /// The newest of the same branch with the same content, entered a short while ago.
    pub same_content: Option<Stored<Deployment>>,
}

/// Looks for deployments that a new one could be a repetition of, or get in the way of. Asks nobody for permission.
///
/// # Errors
/// When the store failed.
pub async fn earlier_deployments(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    branch: &str,
    key: Option<&str>,
    content_hash: &str,
    short_while: Duration,
) -> Result<EarlierDeployments> {
    let since: Timestamp = uow.now().await?.minus(short_while);
    let with_key = match key {
        Some(key) => {
            let query = DeploymentQuery::WithKey(platform.clone(), key.to_owned());
            uow.deployments().first(&query).await?
        }
        None => None,
    };
    let in_flight = DeploymentQuery::InFlightOf(platform.clone(), branch.to_owned());
    let same_content = DeploymentQuery::WithContent {
        platform_id: platform.clone(),
        branch: branch.to_owned(),
        content_hash: content_hash.to_owned(),
    };
    let same_content = uow.deployments().first(&same_content).await?;
    Ok(EarlierDeployments {
        with_key,
        in_flight: uow.deployments().first(&in_flight).await?,
        same_content: same_content.filter(|d| d.created_at >= since),
    })
}

async fn audit(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    deployment: &Deployment,
    action: &'static str,
    before: Option<Value>,
    after: Option<Value>,
) -> Result<()> {
    let happening = Happening {
        platform_id: Some(deployment.platform_id.clone()),
        action,
        entity_id: deployment.id.to_string(),
        before,
        after,
    };
    audited(cx, uow, happening).await
}

fn picture(deployment: &Deployment) -> Value {
    json!({
        "projectName": deployment.project_name,
        "branch": deployment.branch,
        "status": deployment.status,
        "url": deployment.url,
        "errorMessage": deployment.error_message,
        "fileCount": deployment.file_count,
        "totalBytes": deployment.total_bytes,
    })
}
