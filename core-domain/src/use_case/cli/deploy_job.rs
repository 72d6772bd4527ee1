//! The jobs that deploy uploads. `deploy` deploys an uploaded site and updates the deployment record. `deploy.cleanup`
//! removes the upload of a deployment that was canceled.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;

use super::deploy::DeploySite;
use super::redeploy::RedeploySite;
use super::site_job::{
    DeployInput, ProviderDeployment, change_current, current, deployment_canceled, end_with_job,
    new_attempt, record_activation, retry_or_time_out,
};
use super::uploads::{blob_key, manifest_key};
use crate::kernel::{DeploymentId, Patch, Result, Stored};
use crate::port::{
    ArchiveError, BlobError, ResourceRef, Site, SiteArchives, SiteDeployment, SiteState,
    SiteUpload, UnitOfWork,
};
use crate::provisioning::FailureKind;
use crate::registry::{Deployment, DeploymentChange, DeploymentStatus, Resource, ResourceType};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, KindError, Kinds, Observation, StepContext, StepError, Steps,
    enqueue_child,
};
use crate::use_case::registry::{
    CreateObject, CreatesObject, DefaultResource, ObjectProperties, build, deployment,
};

/// Adds the job kinds of the CLI service.
///
/// # Errors
/// [`KindError`] if one of their names is already registered.
pub fn register_kinds(kinds: Kinds, archives: Arc<dyn SiteArchives>) -> Result<Kinds, KindError> {
    let kinds = kinds.with(DeploySite { archives })?;
    kinds.with(RedeploySite)?.with(CleanUpUpload)
}

#[async_trait]
impl JobKind for DeploySite {
    const NAME: &'static str = "deploy";
    type Input = DeployInput;

    /// Creates the pages project, uploads the site, waits until it is served, and removes the upload.
    fn steps() -> Steps<Self> {
        Steps::new()
            .step(CreateObject(SiteProject))
            .step(Upload)
            .step(Activate)
            .step(Cleanup)
    }

    /// Ends the deployment and removes the upload if an operator declared the job complete. Otherwise the steps have
    /// done so.
    async fn on_completed(
        &self,
        cx: &JobContext<'_, Self>,
        uow: &mut dyn UnitOfWork,
    ) -> Result<()> {
        if !cx.job.forced {
            return Ok(());
        }
        end_with_job(cx, uow).await?;
        clean_up(cx, uow).await
    }

    /// Ends the deployment. Keeps the upload for a retry by an operator, unless the job was cancelled or the deployment
    /// had already ended.
    async fn on_failed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let was_cancelled = cx.job.failure_kind == Some(FailureKind::Cancelled);
        let ended_before = end_with_job(cx, uow).await?;
        if was_cancelled || ended_before {
            clean_up(cx, uow).await?;
        }
        Ok(())
    }

    /// Creates a new deployment of the same site if the current one failed or was canceled, because ended deployments
    /// never change. If the current one is served, the job only has to remove the upload.
    async fn on_resumed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        let ended = deployment::of_job(&cx.scope, uow, &cx.job.id).await?;
        let ended = ended.ok_or_else(deployment::missing)?;
        if !matches!(
            ended.status,
            DeploymentStatus::Failure | DeploymentStatus::Canceled
        ) {
            return Ok(());
        }
        build::resume(cx, &cx.scope, uow, &cx.job.id).await?;
        let now = uow.now().await?;
        let id = DeploymentId::generate(now, cx.entropy.as_ref());
        let again = Deployment {
            idempotency_key: id.to_string(),
            id,
            ..new_attempt(&ended, now)
        };
        deployment::create(cx, &cx.scope, uow, again).await?;
        Ok(())
    }

    fn on_resumed_without_platform() -> Result<()> {
        Err(deployment::missing())
    }
}

/// Queues the job that removes the upload.
async fn clean_up(cx: &JobContext<'_, DeploySite>, uow: &mut dyn UnitOfWork) -> Result<()> {
    let parent = Some(&cx.job.id);
    enqueue_child::<CleanUpUpload>(cx, &cx.scope, uow, cx.input, parent).await?;
    Ok(())
}

/// The job kind that removes the upload of a deployment that was canceled.
#[derive(Clone, Copy, Debug)]
struct CleanUpUpload;

impl JobKind for CleanUpUpload {
    const HAS_HOOKS: bool = false;
    const NAME: &'static str = "deploy.cleanup";
    type Input = DeployInput;

    fn steps() -> Steps<Self> {
        Steps::new().step(Cleanup)
    }
}

/// The pages project of the site: the platform's default resource of that type. Platforms have one from their creation,
/// but a deprovisioned platform has to get it back.
#[derive(Clone, Copy, Debug)]
struct SiteProject;

/// The declaration of the project as a default resource.
const PROJECT: DefaultResource = DefaultResource(ResourceType::Pages);

#[async_trait]
impl CreatesObject<DeploySite> for SiteProject {
    const CAN_UNDO: bool = false;

    fn name(&self) -> &'static str {
        "project"
    }

    fn object(&self, input: &DeployInput, item: Option<&str>) -> Result<ResourceRef> {
        CreatesObject::<DeploySite>::object(&PROJECT, input, item)
    }

    async fn ensure_needed(&self, cx: &StepContext<'_, DeploySite>) -> Result<(), StepError> {
        let deployment = current(cx).await?;
        if deployment.status.is_terminal() {
            return Err(deployment_canceled());
        }
        PROJECT.ensure_needed(cx).await
    }

    async fn config(&self, cx: &StepContext<'_, DeploySite>) -> Result<Value, StepError> {
        PROJECT.config(cx).await
    }

    async fn properties(
        &self,
        cx: &JobContext<'_, DeploySite>,
        uow: &mut dyn UnitOfWork,
    ) -> Result<ObjectProperties> {
        PROJECT.properties(cx, uow).await
    }

    async fn record(
        &self,
        cx: &JobContext<'_, DeploySite>,
        uow: &mut dyn UnitOfWork,
        _resource: Stored<Resource>,
    ) -> Result<()> {
        let change = DeploymentChange {
            status: Some(DeploymentStatus::Uploading),
            ..DeploymentChange::default()
        };
        change_current(cx, uow, &change).await
    }
}

/// Uploads the site to the provider.
#[derive(Clone, Copy, Debug)]
pub(super) struct Upload;

#[async_trait]
impl JobStep<DeploySite> for Upload {
    type Output = ProviderDeployment;

    fn name(&self) -> &'static str {
        "upload"
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, DeploySite>,
    ) -> Result<Observation<ProviderDeployment>, StepError> {
        let deployment = current(cx).await?;
        let found = at_provider(cx, &deployment).await?;
        Ok(found.map_or(Observation::Absent, |found| {
            Observation::Present(found.into())
        }))
    }

    async fn apply(
        &self,
        cx: &StepContext<'_, DeploySite>,
    ) -> Result<ProviderDeployment, StepError> {
        let deployment = current(cx).await?;
        let site = open_site(cx).await?;
        cx.guard().await?;
        let upload = SiteUpload {
            project: cx.input.project.clone(),
            branch: cx.input.branch.to_string(),
            deployment_key: deployment.id.to_string(),
            site,
        };
        Ok(cx.infrastructure.deploy_site(upload).await?.into())
    }

    async fn record(
        &self,
        cx: &JobContext<'_, DeploySite>,
        uow: &mut dyn UnitOfWork,
        output: &ProviderDeployment,
    ) -> Result<()> {
        let change = DeploymentChange {
            status: Some(DeploymentStatus::Deploying),
            cf_deployment_id: Patch::Set(output.cf_deployment_id.clone()),
            ..DeploymentChange::default()
        };
        change_current(cx, uow, &change).await
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(600)
    }
}

/// Opens the uploaded site. A planned upload is completed with the files of its plan.
async fn open_site(cx: &StepContext<'_, DeploySite>) -> Result<Arc<dyn Site>, StepError> {
    let (id, archives) = (&cx.input.deployment_id, &cx.kind.archives);
    let upload = cx.blobs.open(&blob_key(id)).await?;
    let opened = if cx.input.is_planned {
        let manifest = cx.blobs.open(&manifest_key(id)).await?;
        archives.open_part(upload, manifest).await
    } else {
        archives.open(upload).await
    };
    opened.map_err(not_a_site)
}

/// Converts the error of an archive. The upload was checked when it was received, so an archive that is refused now is
/// damaged.
fn not_a_site(error: ArchiveError) -> StepError {
    match error {
        ArchiveError::Refused(why) => StepError::permanent("INVALID_UPLOAD", why.to_string()),
        ArchiveError::Unreadable(cause) => BlobError::Failed(cause).into(),
    }
}

/// Waits until the provider serves the site.
#[derive(Clone, Copy, Debug)]
pub(super) struct Activate;

#[async_trait]
impl JobStep<DeploySite> for Activate {
    type Output = ProviderDeployment;

    fn name(&self) -> &'static str {
        "activate"
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, DeploySite>,
    ) -> Result<Observation<ProviderDeployment>, StepError> {
        let deployment = current(cx).await?;
        let Some(found) = at_provider(cx, &deployment).await? else {
            return Ok(Observation::Absent);
        };
        match &found.state {
            SiteState::Active => Ok(Observation::Present(found.into())),
            SiteState::Failed(why) => Err(StepError::permanent("DEPLOYMENT_FAILED", why)),
            SiteState::Deploying => Err(retry_or_time_out(cx, &deployment).await?),
        }
    }

    async fn apply(
        &self,
        _cx: &StepContext<'_, DeploySite>,
    ) -> Result<ProviderDeployment, StepError> {
        Err(StepError::permanent(
            "DEPLOYMENT_LOST",
            "the provider no longer has the deployment",
        ))
    }

    async fn record(
        &self,
        cx: &JobContext<'_, DeploySite>,
        uow: &mut dyn UnitOfWork,
        output: &ProviderDeployment,
    ) -> Result<()> {
        record_activation(cx, uow, output).await
    }
}

/// Removes the upload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cleanup;

#[async_trait]
impl<K: JobKind<Input = DeployInput>> JobStep<K> for Cleanup {
    const HAS_RECORD: bool = false;
    type Output = ();

    fn name(&self) -> &'static str {
        "cleanup"
    }

    async fn observe(&self, _cx: &StepContext<'_, K>) -> Result<Observation<()>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<(), StepError> {
        let id = &cx.input.deployment_id;
        if cx.input.is_planned {
            cx.blobs.remove(&manifest_key(id)).await?;
        }
        Ok(cx.blobs.remove(&blob_key(id)).await?)
    }
}

async fn at_provider(
    cx: &StepContext<'_, DeploySite>,
    deployment: &Deployment,
) -> Result<Option<SiteDeployment>, StepError> {
    let key = deployment.id.as_str();
    Ok(cx
        .infrastructure
        .site_deployment(&cx.input.project, key)
        .await?)
}
