//! The steps of a deployment.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::deploy_input::{DeployInput, DeploySite, blob_key};
use crate::kernel::{Patch, Result, Stored};
use crate::port::{
    ArchiveError, BlobError, Mode, SiteDeployment, SiteState, SiteUpload, UnitOfWork,
};
use crate::registry::{BuildEnd, Deployment, DeploymentChange, DeploymentStatus};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError,
};
use crate::use_case::registry::{MadeResource, MakeResource, build, deployment};

/// How often the provider is asked whether a deployment is served.
const POLL: Duration = Duration::from_secs(2);

/// Makes sure that the pages project is there: platforms have one from the start, but a deprovisioned one gets it back.
#[derive(Clone, Copy, Debug)]
pub(super) struct Project(pub(super) MakeResource);

#[async_trait]
impl JobStep<DeploySite> for Project {
    type Output = MadeResource;

    fn name(&self) -> &'static str {
        "project"
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, DeploySite>,
    ) -> Result<Observation<MadeResource>, StepError> {
        let deployment = current(cx).await?;
        if deployment.status.is_terminal() {
            return Err(called_off());
        }
        self.0.observe(cx).await
    }

    async fn apply(&self, cx: &StepContext<'_, DeploySite>) -> Result<MadeResource, StepError> {
        self.0.apply(cx).await
    }

    async fn record(
        &self,
        cx: &JobContext<'_, DeploySite>,
        uow: &mut dyn UnitOfWork,
        output: &MadeResource,
    ) -> Result<()> {
        self.0.record(cx, uow, output).await?;
        let change = DeploymentChange {
            status: Some(DeploymentStatus::Uploading),
            ..DeploymentChange::default()
        };
        change_current(cx, uow, &change).await
    }
}

/// What a deployment is at the provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AtProvider {
    cf_deployment_id: String,
    url: String,
}

impl From<SiteDeployment> for AtProvider {
    fn from(found: SiteDeployment) -> Self {
        Self {
            cf_deployment_id: found.id,
            url: found.url,
        }
    }
}

/// Hands the site to the provider.
#[derive(Clone, Copy, Debug)]
pub(super) struct Upload;

#[async_trait]
impl JobStep<DeploySite> for Upload {
    type Output = AtProvider;

    fn name(&self) -> &'static str {
        "upload"
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, DeploySite>,
    ) -> Result<Observation<AtProvider>, StepError> {
        let deployment = current(cx).await?;
        let found = at_provider(cx, &deployment).await?;
        Ok(found.map_or(Observation::Absent, |found| {
            Observation::Present(found.into())
        }))
    }

    async fn apply(&self, cx: &StepContext<'_, DeploySite>) -> Result<AtProvider, StepError> {
        let deployment = current(cx).await?;
        let upload = cx.blobs.open(&blob_key(&cx.input.deployment_id)).await?;
        let site = cx.kind.archives.open(upload).await.map_err(not_a_site)?;
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
        output: &AtProvider,
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

/// The upload was checked when it came in, so this is a damaged one.
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
    type Output = AtProvider;

    fn name(&self) -> &'static str {
        "activate"
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, DeploySite>,
    ) -> Result<Observation<AtProvider>, StepError> {
        let deployment = current(cx).await?;
        let Some(found) = at_provider(cx, &deployment).await? else {
            return Ok(Observation::Absent);
        };
        match &found.state {
            SiteState::Active => Ok(Observation::Present(found.into())),
            SiteState::Failed(why) => Err(StepError::permanent("DEPLOYMENT_FAILED", why)),
            SiteState::Deploying => Err(look_again(cx, &deployment).await?),
        }
    }

    async fn apply(&self, _cx: &StepContext<'_, DeploySite>) -> Result<AtProvider, StepError> {
        Err(StepError::permanent(
            "DEPLOYMENT_LOST",
            "the provider does not know the deployment any more",
        ))
    }

    async fn record(
        &self,
        cx: &JobContext<'_, DeploySite>,
        uow: &mut dyn UnitOfWork,
        output: &AtProvider,
    ) -> Result<()> {
        let change = DeploymentChange {
            status: Some(DeploymentStatus::Active),
            cf_deployment_id: Patch::Set(output.cf_deployment_id.clone()),
            url: Patch::Set(output.url.clone()),
            ..DeploymentChange::default()
        };
        change_current(cx, uow, &change).await
    }
}

/// To look again soon, unless the provider has had its time.
async fn look_again(
    cx: &StepContext<'_, DeploySite>,
    deployment: &Deployment,
) -> Result<StepError, StepError> {
    let now = cx.store.begin(Mode::Auto).await?.now().await?;
    let began = deployment.started_at.unwrap_or(now);
    if now.since(began) > deployment::STUCK_AFTER {
        let message = "the provider did not serve the site within 15 minutes";
        return Ok(StepError::permanent("TIMEOUT", message));
    }
    Ok(StepError::Wait {
        until: now.plus(POLL),
        reason: "the provider to serve the site".to_owned(),
        found: None,
    })
}

/// Removes the upload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cleanup;

#[async_trait]
impl<K: JobKind<Input = DeployInput>> JobStep<K> for Cleanup {
    const RECORDS: bool = false;
    type Output = ();

    fn name(&self) -> &'static str {
        "cleanup"
    }

    async fn observe(&self, _cx: &StepContext<'_, K>) -> Result<Observation<()>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, K>) -> Result<(), StepError> {
        Ok(cx.blobs.remove(&blob_key(&cx.input.deployment_id)).await?)
    }
}

/// The deployment the job works on at the moment.
async fn current(cx: &StepContext<'_, DeploySite>) -> Result<Stored<Deployment>, StepError> {
    let mut uow = cx.store.begin(Mode::Read).await?;
    let platform = cx.platform(uow.as_mut()).await?;
    let platform = platform.ok_or_else(called_off)?;
    let found = deployment::of_job(&platform, uow.as_mut(), &cx.job.id).await?;
    found.ok_or_else(called_off)
}

fn called_off() -> StepError {
    StepError::Precondition("the deployment was called off".to_owned())
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

async fn change_current(
    cx: &JobContext<'_, DeploySite>,
    uow: &mut dyn UnitOfWork,
    change: &DeploymentChange,
) -> Result<()> {
    let platform = cx.platform(uow).await?.ok_or_else(deployment::missing)?;
    let found = deployment::of_job(&platform, uow, &cx.job.id).await?;
    let found = found.ok_or_else(deployment::missing)?;
    let changed = deployment::change(cx, &platform, uow, &found.id, change).await?;
    if !changed.status.is_terminal() {
        return Ok(());
    }
    let end = BuildEnd::of(&changed);
    build::end(cx, &platform, uow, &cx.job.id, end).await
}
