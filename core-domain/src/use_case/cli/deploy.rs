//! Asking for a deployment, and looking at one.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::uploads::ensure_room;
use crate::access::{PlatformAccess, PlatformScope, PlatformWriter};
use crate::kernel::{
    Code, Context, DeploymentId, Environment, Error, IllegalMove, PlatformId, PlatformOwned,
    Result, Stored, grant,
};
use crate::port::{SiteArchives, SiteStorage, UnitOfWork};
use crate::provisioning::{Job, LaneKey};
use crate::registry::{
    Branch, BuildTrigger, Deployment, DeploymentQuery, DeploymentStatus, PlatformStatus,
    ResourceType, resource_name,
};
use crate::use_case::provisioning::{JobInput, enqueue};
use crate::use_case::registry::{HasTarget, Target, build, deployment};

/// How long the same content for the same branch, without a key, is the same deployment.
const REPEATED_WITHIN: Duration = Duration::from_secs(10 * 60);

/// A site to be deployed. The upload is stored already, see [`blob_key`](super::blob_key).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deploy {
    /// The branch.
    pub branch: Branch,
    /// The idempotency key: a second request of the same person or program is the same deployment. The content decides
    /// if there is none.
    pub key: Option<String>,
    /// Who deploys.
    pub user_id: String,
    /// The id the deployment will have.
    pub deployment_id: DeploymentId,
    /// SHA-256 of what was uploaded, in hex.
    pub content_hash: String,
    /// How many files the site has.
    pub file_count: i64,
    /// How large they are in all.
    pub total_bytes: i64,
    /// The bytes of the platform's sites at the provider, and those that this site would add.
    pub storage: SiteStorage,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Deployed {
    /// A new deployment is queued.
    New(Stored<Deployment>),
    /// It was asked for before; this is where it stands.
    Replayed(Stored<Deployment>),
}

/// Refuses deployments to a platform that is cancelled; ask before an upload is read.
///
/// # Errors
/// `INVALID_STATE`.
pub fn ensure_ready_to_deploy(scope: &PlatformScope<grant::DeploymentCreate>) -> Result<()> {
    // A suspended platform's callers are refused before; what an operator sends waits in the held lane.
    let open = [PlatformStatus::Active, PlatformStatus::Suspended];
    let status = scope.platform().status;
    if open.contains(&status) {
        return Ok(());
    }
    Err(IllegalMove::new(status, open).into())
}

/// Refuses a site that would exceed the platform's bytes. Call it before the upload is stored. Repetitions of earlier
/// deployments pass, and so do those that [`deploy`] refuses for another reason.
///
/// # Errors
/// `LIMIT_REACHED`.
pub async fn ensure_room_for_site(
    cx: &Context,
    scope: &PlatformScope<grant::DeploymentCreate>,
    uow: &mut dyn UnitOfWork,
    wanted: &Deploy,
) -> Result<()> {
    match replay_or_conflict(scope, uow, wanted).await {
        Ok(None) => ensure_room(cx, scope, uow, &wanted.storage).await,
        Ok(Some(_)) | Err(Error::Refused { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Queues a deployment, unless it was asked for before. When nothing new was queued, the upload is the caller's to remove.
///
/// # Errors
/// As [`ensure_ready_to_deploy`]; `IDEMPOTENCY_KEY_REUSED` for the same key with another branch or content; `CONFLICT`
/// while another deployment of the branch has not ended; `LIMIT_REACHED`.
pub async fn deploy(
    cx: &Context,
    scope: &PlatformScope<grant::DeploymentCreate>,
    uow: &mut dyn UnitOfWork,
    wanted: Deploy,
) -> Result<Deployed> {
    ensure_ready_to_deploy(scope)?;
    if let Some(known) = replay_or_conflict(scope, uow, &wanted).await? {
        return Ok(Deployed::Replayed(known));
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
    };
    let stored = deployment::create(cx, scope.writer(), uow, deployment).await?;
    Ok(Deployed::New(stored))
}

/// The name of the pages project that deployments of a platform go to.
#[must_use]
pub fn site_project(scope: &PlatformScope<grant::DeploymentCreate>) -> String {
    resource_name(
        scope.id(),
        &scope.platform().slug,
        Environment::Prod,
        ResourceType::Pages,
    )
}

/// The deployment this is a repetition of.
async fn replay_or_conflict(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    wanted: &Deploy,
) -> Result<Option<Stored<Deployment>>> {
    let key = wanted.key.clone().map(|key| DeploymentQuery::WithKeyOf {
        idempotency_key: key,
        user_id: wanted.user_id.clone(),
    });
    let earlier = deployment::earlier(
        scope,
        uow,
        &wanted.branch,
        key,
        &wanted.content_hash,
        REPEATED_WITHIN,
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
    // One that did not work is no reason not to try again.
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
        None => Ok(None),
        Some(other) => Err(Error::Refused {
            code: Code::Conflict,
            message: "Another deployment of this branch has not ended yet.".to_owned(),
            details: json!({ "deploymentId": other.id, "status": other.status }),
        }),
    }
}

/// Queues the job, and enters the build that is.
async fn queue(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    wanted: &Deploy,
    project: &str,
) -> Result<Stored<Job>> {
    let platform = scope.platform();
    let input = DeployInput {
        deployment_id: wanted.deployment_id.clone(),
        project: project.to_owned(),
        branch: wanted.branch.clone(),
        target: Target {
            platform_id: platform.id.clone(),
            slug: platform.slug.clone(),
            entity_id: None,
            environment: Environment::Prod,
            plan_tier: platform.tier.as_str().to_owned(),
            billing_email: None,
        },
    };
    let job = enqueue::<DeploySite>(cx, scope, uow, &input).await?;
    let environment = input.target.environment;
    build::begin(cx, scope, uow, &job.id, environment, BuildTrigger::Manual).await?;
    Ok(job)
}

/// The deployment of this id, if its creation was committed after all: for when the answer of the commit was lost.
///
/// # Errors
/// When the store failed.
pub async fn find_created(
    scope: &PlatformScope<grant::DeploymentCreate>,
    uow: &mut dyn UnitOfWork,
    id: &DeploymentId,
) -> Result<Option<Stored<Deployment>>> {
    deployment::find(scope, uow, id).await
}

/// A deployment of a platform.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn get(
    scope: &PlatformScope<grant::DeploymentRead>,
    uow: &mut dyn UnitOfWork,
    deployment: &DeploymentId,
) -> Result<Stored<Deployment>> {
    deployment::get(scope, uow, deployment).await
}

/// What the keys of uploads begin with.
pub(super) const BLOB_PREFIX: &str = "deploy-";

/// Where the upload of a deployment waits for its job.
#[must_use]
pub fn blob_key(deployment: &DeploymentId) -> String {
    let text = deployment.as_str().to_ascii_lowercase();
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let text: String = text.chars().filter(|c| fits(*c)).take(100).collect();
    format!("{BLOB_PREFIX}{text}")
}

/// The kind of job that deploys a site, and what it unpacks uploads with.
#[derive(Clone, Debug)]
pub(super) struct DeploySite {
    pub(super) archives: Arc<dyn SiteArchives>,
}

/// What is to be deployed. An operator's retry of the job makes a new deployment record; the upload stays the one of the
/// first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeployInput {
    /// The deployment that was asked for; names the upload.
    pub(super) deployment_id: DeploymentId,
    pub(super) project: String,
    pub(super) branch: Branch,
    #[serde(flatten)]
    pub(super) target: Target,
}

impl HasTarget for DeployInput {
    fn target(&self) -> &Target {
        &self.target
    }
}

impl JobInput for DeployInput {
    type Owner = PlatformOwned;

    fn lane(&self) -> LaneKey {
        self.target.lane()
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.target.platform_id)
    }

    fn environment(&self) -> Option<Environment> {
        Some(self.target.environment)
    }
}
