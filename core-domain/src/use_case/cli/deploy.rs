//! Asking for a deployment, and looking at one.

use std::time::Duration;

use serde_json::json;

use super::deploy_job::{self, DeployInput};
use crate::kernel::{
    Code, Context, DeploymentId, Environment, Error, Permission, PlatformId, Result,
};
use crate::port::{Stored, UnitOfWork};
use crate::provisioning::Job;
use crate::registry::{
    Deployment, DeploymentStatus, Platform, PlatformStatus, ResourceType, resource_name,
};
use crate::use_case::provisioning::{NewJob, enqueue};
use crate::use_case::registry::{self, NewDeployment, Target, reach, to_input};

/// How long the same content for the same branch, without a key, is the same deployment.
const REPEATED_WITHIN: Duration = Duration::from_secs(10 * 60);

/// A site to be deployed. The upload is stored already, see [`blob_key`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deploy {
    /// The platform.
    pub platform_id: PlatformId,
    /// The branch.
    pub branch: String,
    /// What makes a second request the same deployment; the content does when there is none.
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
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Deployed {
    /// A new deployment is queued.
    New(Stored<Deployment>),
    /// It was asked for before; this is where it stands.
    Before(Stored<Deployment>),
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

/// Tells whether the caller may deploy to the platform now; ask before an upload is read.
///
/// # Errors
/// As [`reach`] with `deployment:create`; `INVALID_STATE` for a platform that is cancelled or deleted.
pub async fn ready_to_deploy(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
) -> Result<Stored<Platform>> {
    let platform = reach(cx, uow, Permission::DeploymentCreate, platform).await?;
    // A suspended platform's callers are refused by the gateway; what a service sends waits in the held lane.
    let open = [PlatformStatus::Active, PlatformStatus::Suspended];
    if open.contains(&platform.status) {
        return Ok(platform);
    }
    Err(Error::InvalidState {
        status: platform.status.as_str(),
        allowed_from: open.iter().map(|s| s.as_str()).collect(),
    })
}

/// Queues a deployment, unless it was asked for before. Wake the workers after the commit; when nothing new was queued,
/// the upload is the caller's to remove.
///
/// # Errors
/// As [`ready_to_deploy`]; `IDEMPOTENCY_KEY_REUSED` for the same key with another branch or content; `CONFLICT` while
/// another deployment of the branch has not ended.
pub async fn deploy(cx: &Context, uow: &mut dyn UnitOfWork, wanted: Deploy) -> Result<Deployed> {
    let platform = ready_to_deploy(cx, uow, &wanted.platform_id).await?;
    if let Some(known) = before(uow, &wanted).await? {
        return Ok(Deployed::Before(known));
    }
    let project = resource_name(
        &platform.id,
        &platform.slug,
        Environment::Prod,
        ResourceType::Pages,
    );
    let job = queue(cx, uow, &platform, &wanted, &project).await?;
    let key = wanted
        .key
        .unwrap_or_else(|| wanted.deployment_id.to_string());
    let new = NewDeployment {
        id: wanted.deployment_id,
        idempotency_key: key,
        platform_id: wanted.platform_id,
        user_id: wanted.user_id,
        project_name: project,
        branch: wanted.branch,
        file_count: wanted.file_count,
        total_bytes: wanted.total_bytes,
        content_hash: wanted.content_hash,
        job_id: job.id.clone(),
    };
    let stored = registry::create_deployment(cx, uow, new).await?;
    Ok(Deployed::New(stored))
}

/// The deployment this is a repetition of.
async fn before(uow: &mut dyn UnitOfWork, wanted: &Deploy) -> Result<Option<Stored<Deployment>>> {
    let earlier = registry::earlier_deployments(
        uow,
        &wanted.platform_id,
        &wanted.branch,
        wanted.key.as_deref(),
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
        return Err(registry::key_reused());
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

async fn queue(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &Platform,
    wanted: &Deploy,
    project: &str,
) -> Result<Stored<Job>> {
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
    let job = NewJob {
        environment: Some(Environment::Prod),
        input: to_input(&input),
        ..NewJob::for_platform(deploy_job::NAME, platform.id.clone(), &deploy_job::STEPS)
    };
    enqueue(cx, uow, job).await
}

/// A deployment of a platform.
///
/// # Errors
/// `UNAUTHORIZED`, `NOT_FOUND`; `FORBIDDEN` without `deployment:read`.
pub async fn find_deployment(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    deployment: &DeploymentId,
) -> Result<Stored<Deployment>> {
    registry::find_deployment(cx, uow, platform, deployment).await
}
