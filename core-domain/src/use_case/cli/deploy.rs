//! Requests for deployments of built sites.

use std::sync::Arc;
use std::time::Duration;

use super::site_job::{DeployInput, site_target};
use super::uploads::ensure_room;
use crate::access::{PlatformAccess, PlatformScope, PlatformWriter};
use crate::kernel::{
    Context, DeploymentId, Environment, Error, IllegalTransition, Result, Stored, permission,
};
use crate::port::{SiteArchives, SiteStorage, UnitOfWork};
use crate::provisioning::Job;
use crate::registry::{
    Branch, BuildTrigger, Deployment, DeploymentMessage, DeploymentQuery, DeploymentStatus,
    PlatformStatus, ResourceType, resource_name,
};
use crate::use_case::provisioning::enqueue;
use crate::use_case::registry::{build, deployment};

/// The time within which a request without a key, with the same content and branch, repeats the earlier deployment.
const REPLAY_WINDOW: Duration = Duration::from_secs(10 * 60);

/// A request to deploy a site. The upload is already stored, see [`blob_key`](super::blob_key).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deploy {
    /// The branch that the site is deployed to.
    pub branch: Branch,
    /// The idempotency key. A second request of the same caller with the same key returns the same deployment. Without
    /// a key, requests are compared by their content.
    pub key: Option<String>,
    /// The caller that deploys: the id of a user or the name of a service.
    pub user_id: String,
    /// The id that the deployment will have.
    pub deployment_id: DeploymentId,
    /// SHA-256 digest of the upload, in hexadecimal. For a planned upload, that of its list of files.
    pub content_hash: String,
    /// Whether the upload has only the files that the provider did not have. The list of all files is then stored too,
    /// see [`manifest_key`](super::manifest_key).
    pub is_planned: bool,
    /// The description that the caller gave.
    pub message: Option<DeploymentMessage>,
    /// Number of files of the site.
    pub file_count: i64,
    /// Total size of the files in bytes.
    pub total_bytes: i64,
    /// The stored bytes of the platform's sites at the provider, and the bytes that this site would add.
    pub storage: SiteStorage,
}

/// The result of a request to deploy.
#[derive(Clone, Debug, PartialEq)]
pub enum DeployOutcome {
    /// A new deployment is queued.
    New(Stored<Deployment>),
    /// The request repeats an earlier one. The value is the current state of the earlier deployment.
    Replayed(Stored<Deployment>),
}

/// Refuses deployments to a platform that is cancelled or deleted. Call it before the upload is read.
///
/// # Errors
/// `INVALID_STATE` if the platform is neither active nor suspended.
pub fn ensure_ready_to_deploy(scope: &PlatformScope<permission::DeploymentCreate>) -> Result<()> {
    // Callers of a suspended platform are refused earlier. A deployment by an operator waits in the held lane.
    let open = [PlatformStatus::Active, PlatformStatus::Suspended];
    let status = scope.platform().status;
    if open.contains(&status) {
        return Ok(());
    }
    Err(IllegalTransition::new(status, open).into())
}

/// Refuses a site that would exceed the platform's storage limit. Call it before the upload is stored. Repetitions of
/// earlier deployments are accepted. Requests that [`deploy`] refuses for another reason are accepted too.
///
/// # Errors
/// `LIMIT_REACHED` if the platform's sites would exceed the limit.
pub async fn ensure_room_for_site(
    cx: &Context,
    scope: &PlatformScope<permission::DeploymentCreate>,
    uow: &mut dyn UnitOfWork,
    wanted: &Deploy,
) -> Result<()> {
    match replay_or_conflict(scope, uow, wanted).await {
        Ok(None) => ensure_room(cx, scope, uow, &wanted.storage).await,
        Ok(Some(_)) | Err(Error::Refused { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Queues a deployment, unless the request repeats an earlier one. If nothing is queued, the caller has to remove the
/// upload.
///
/// # Errors
/// - `INVALID_STATE` if the platform is neither active nor suspended.
/// - `IDEMPOTENCY_KEY_REUSED` if the key was used with another branch or content.
/// - `CONFLICT` while another deployment of the branch has not ended, or if the branch is `production` and a deployment
///   is pinned.
/// - `LIMIT_REACHED` if the platform's sites would exceed the storage limit, or too many deployments or jobs are open.
pub async fn deploy(
    cx: &Context,
    scope: &PlatformScope<permission::DeploymentCreate>,
    uow: &mut dyn UnitOfWork,
    wanted: Deploy,
) -> Result<DeployOutcome> {
    ensure_ready_to_deploy(scope)?;
    if let Some(known) = replay_or_conflict(scope, uow, &wanted).await? {
        return Ok(DeployOutcome::Replayed(known));
    }
    ensure_room(cx, scope, uow, &wanted.storage).await?;
    let project_name = site_project(scope);
    let job = queue(cx, scope.writer(), uow, &wanted, &project_name).await?;
    let now = uow.now().await?;
    let key = wanted.key;
    let deployment = Deployment {
        idempotency_key: key.unwrap_or_else(|| wanted.deployment_id.to_string()),
        id: wanted.deployment_id,
        platform_id: scope.id().clone(),
        user_id: wanted.user_id,
        cf_deployment_id: None,
        project_name,
        branch: wanted.branch,
        url: None,
        error_message: None,
        status: DeploymentStatus::Queued,
        file_count: Some(wanted.file_count),
        total_bytes: Some(wanted.total_bytes),
        started_at: None,
        completed_at: None,
        created_at: now,
        updated_at: now,
        content_hash: Some(wanted.content_hash),
        job_id: Some(job.id.clone()),
        message: wanted.message,
        permalink: None,
        source_id: None,
        pinned_at: None,
    };
    let stored = deployment::create(cx, scope.writer(), uow, deployment).await?;
    Ok(DeployOutcome::New(stored))
}

/// Returns the name of the pages project that the platform's sites are deployed to.
#[must_use]
pub fn site_project(scope: &PlatformScope<permission::DeploymentCreate>) -> String {
    resource_name(
        scope.id(),
        &scope.platform().slug,
        Environment::Prod,
        ResourceType::Pages,
    )
}

/// Returns the earlier deployment that the request repeats, if any.
///
/// # Errors
/// `IDEMPOTENCY_KEY_REUSED` if the key was used with another branch or content; `CONFLICT` while another deployment of
/// the branch has not ended, or if the branch is `production` and a deployment is pinned.
async fn replay_or_conflict(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    wanted: &Deploy,
) -> Result<Option<Stored<Deployment>>> {
    let key = wanted.key.clone().map(|key| DeploymentQuery::WithKeyOf {
        idempotency_key: key,
        user_id: wanted.user_id.clone(),
    });
    let earlier = deployment::find_earlier(
        scope,
        uow,
        &wanted.branch,
        key,
        &wanted.content_hash,
        REPLAY_WINDOW,
    )
    .await?;
    if let Some(known) = earlier.with_key {
        let same = known.branch == wanted.branch
            && known.content_hash.as_ref() == Some(&wanted.content_hash);
        if same {
            return Ok(Some(known));
        }
        return Err(deployment::key_reused());
    }
    // A deployment that failed or was canceled does not prevent another attempt.
    let works = |d: &Stored<Deployment>| {
        !matches!(
            d.status,
            DeploymentStatus::Failure | DeploymentStatus::Canceled
        )
    };
    let repeated = earlier.same_content.filter(works);
    if wanted.key.is_none() && repeated.is_some() {
        return Ok(repeated);
    }
    match earlier.in_flight {
        None => deployment::ensure_not_pinned(scope, uow, &wanted.branch).await?,
        Some(other) => return Err(deployment::in_flight_conflict(&other)),
    }
    Ok(None)
}

/// Queues the job of the deployment and records its build.
async fn queue(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    wanted: &Deploy,
    project: &str,
) -> Result<Stored<Job>> {
    let input = DeployInput {
        deployment_id: wanted.deployment_id.clone(),
        project: project.to_owned(),
        branch: wanted.branch.clone(),
        is_planned: wanted.is_planned,
        target: site_target(scope),
    };
    let job = enqueue::<DeploySite>(cx, scope, uow, &input).await?;
    let environment = input.target.environment;
    build::begin(cx, scope, uow, &job.id, environment, BuildTrigger::Manual).await?;
    Ok(job)
}

/// Returns the deployment with this id, if its creation was committed. Use it if the response of the commit was lost.
///
/// # Errors
/// Only those of the store.
pub async fn find_created(
    scope: &PlatformScope<permission::DeploymentCreate>,
    uow: &mut dyn UnitOfWork,
    id: &DeploymentId,
) -> Result<Option<Stored<Deployment>>> {
    deployment::find(scope, uow, id).await
}

/// The job kind that deploys a site.
#[derive(Clone, Debug)]
pub(super) struct DeploySite {
    /// Reads the files of uploaded archives.
    pub(super) archives: Arc<dyn SiteArchives>,
}
