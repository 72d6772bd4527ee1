//! `deploy`: puts an uploaded site up, and lets the deployment's record follow; `deploy.cleanup`: removes the upload of
//! one that was called off.

use std::sync::Arc;

use async_trait::async_trait;

use super::deploy_input::{DeployInput, DeploySite};
use super::deploy_steps::{Activate, Cleanup, Project, Upload};
use crate::access::PlatformWriter;
use crate::kernel::{DeploymentId, Patch, Result, Stored};
use crate::port::{SiteArchives, UnitOfWork};
use crate::provisioning::FailureKind;
use crate::registry::{BuildEnd, Deployment, DeploymentChange, DeploymentStatus, ResourceType};
use crate::use_case::provisioning::{JobContext, JobKind, KindError, Kinds, Steps, enqueue_child};
use crate::use_case::registry::{MakeResource, build, deployment};

/// Adds the kinds of jobs of the command line's service.
///
/// # Errors
/// [`KindError`] when one of their names is taken.
pub fn register_kinds(kinds: Kinds, archives: Arc<dyn SiteArchives>) -> Result<Kinds, KindError> {
    kinds.with(DeploySite { archives })?.with(CleanUpUpload)
}

#[async_trait]
impl JobKind for DeploySite {
    const NAME: &'static str = "deploy";
    type Input = DeployInput;

    /// The pages project is there, the site is with the provider, it is served, the upload is removed.
    fn steps() -> Steps<Self> {
        Steps::new()
            .then(Project(MakeResource(ResourceType::Pages)))
            .then(Upload)
            .then(Activate)
            .then(Cleanup)
    }

    /// Only a job that an operator declared done leaves anything to do.
    async fn completed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        if !cx.job.forced {
            return Ok(());
        }
        let change = DeploymentChange {
            status: Some(DeploymentStatus::Active),
            ..DeploymentChange::default()
        };
        end(cx, uow, &change).await?;
        clean_up(cx, uow).await
    }

    /// Keeps the upload for an operator's retry, unless the job was cancelled or the deployment had ended before.
    async fn failed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let called_off = cx.job.failure_kind == Some(FailureKind::Cancelled);
        let status = if called_off {
            DeploymentStatus::Canceled
        } else {
            DeploymentStatus::Failure
        };
        let error = cx.job.error.as_ref();
        let said = error.map(|error| format!("{}: {}", error.code, error.message));
        let said = said.or_else(|| cx.job.reason.clone());
        let change = DeploymentChange {
            status: Some(status),
            error_message: said.map_or(Patch::Keep, Patch::Set),
            ..DeploymentChange::default()
        };
        let ended_before = end(cx, uow, &change).await?;
        if called_off || ended_before {
            clean_up(cx, uow).await?;
        }
        Ok(())
    }

    /// A deployment that did not work stays as it is, so the job goes on with a new one of the same site. One that is served
    /// wants nothing but its upload removed.
    async fn resumed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Err(deployment::missing());
        };
        let ended = deployment::of_job(&platform, uow, &cx.job.id).await?;
        let ended = ended.ok_or_else(deployment::missing)?;
        if !matches!(
            ended.status,
            DeploymentStatus::Failure | DeploymentStatus::Canceled
        ) {
            return Ok(());
        }
        build::resume(cx, &platform, uow, &cx.job.id).await?;
        let again = repeated(cx, uow, &ended).await?;
        deployment::create(cx, &platform, uow, again).await?;
        Ok(())
    }
}

/// A new deployment of what an earlier one deployed.
async fn repeated(
    cx: &JobContext<'_, DeploySite>,
    uow: &mut dyn UnitOfWork,
    ended: &Stored<Deployment>,
) -> Result<Deployment> {
    let now = uow.now().await?;
    let id = DeploymentId::generate(now, cx.entropy.as_ref());
    Ok(Deployment {
        idempotency_key: id.to_string(),
        id,
        cf_deployment_id: None,
        url: None,
        error_message: None,
        status: DeploymentStatus::Queued,
        started_at: None,
        completed_at: None,
        created_at: now,
        updated_at: now,
        ..ended.edit()
    })
}

/// Ends the deployment unless it has ended, and its build as the deployment ended. Tells whether it had ended before.
async fn end(
    cx: &JobContext<'_, DeploySite>,
    uow: &mut dyn UnitOfWork,
    change: &DeploymentChange,
) -> Result<bool> {
    let Some(platform) = cx.platform(uow).await? else {
        return Ok(false);
    };
    let Some(found) = deployment::of_job(&platform, uow, &cx.job.id).await? else {
        return Ok(false);
    };
    let ended_before = found.status.is_terminal();
    let ended = if ended_before {
        found
    } else {
        deployment::change(cx, &platform, uow, &found.id, change).await?
    };
    build::end(cx, &platform, uow, &cx.job.id, BuildEnd::of(&ended)).await?;
    Ok(ended_before)
}

/// Queues what removes the upload.
async fn clean_up(cx: &JobContext<'_, DeploySite>, uow: &mut dyn UnitOfWork) -> Result<()> {
    let platform: Option<PlatformWriter> = cx.platform(uow).await?;
    if let Some(platform) = platform {
        let parent = Some(&cx.job.id);
        enqueue_child::<CleanUpUpload>(cx, &platform, uow, cx.input, parent).await?;
    }
    Ok(())
}

/// The kind that removes the upload of a deployment that was called off.
#[derive(Clone, Copy, Debug)]
struct CleanUpUpload;

impl JobKind for CleanUpUpload {
    const HOOKS: bool = false;
    const NAME: &'static str = "deploy.cleanup";
    type Input = DeployInput;

    fn steps() -> Steps<Self> {
        Steps::new().then(Cleanup)
    }
}
