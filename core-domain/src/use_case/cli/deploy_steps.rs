//! The steps of a deployment.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};

use super::blob_key;
use super::deploy_job::DeployInput;
use crate::cli::SiteError;
use crate::kernel::{Context, Result, Timestamp};
use crate::port::{Mode, SiteArchives, SiteDeployment, SiteState, SiteUpload, UnitOfWork};
use crate::provisioning::{Job, JobStep, Observation, StepContext, StepError};
use crate::registry::{DeploymentChange, DeploymentStatus};
use crate::use_case::registry::{
    MakeResource, as_asked_by, change_deployment, look_up_deployment, read_input,
};

/// How often the provider is asked whether a deployment is served.
const POLL: Duration = Duration::from_secs(2);

/// How long the provider may take to serve a deployment.
const STUCK_AFTER: Duration = Duration::from_secs(15 * 60);

/// Makes sure that the pages project is there: platforms have one from the start, but a deprovisioned one gets it back.
#[derive(Debug)]
pub(super) struct Project(pub(super) MakeResource);

#[async_trait]
impl JobStep for Project {
    async fn observe(&self, cx: &StepContext<'_>) -> Result<Observation, StepError> {
        let input: DeployInput = read_input(cx.job)?;
        let mut uow = cx.store.begin(Mode::Auto).await?;
        let found = look_up_deployment(uow.as_mut(), &input.deployment_id).await?;
        drop(uow);
        if found.is_none_or(|d| d.status.is_terminal()) {
            let ended = "the deployment was called off".to_owned();
            return Err(StepError::Precondition(ended));
        }
        self.0.observe(cx).await
    }

    async fn apply(&self, cx: &StepContext<'_>) -> Result<Value, StepError> {
        self.0.apply(cx).await
    }

    async fn record(
        &self,
        cx: &Context,
        uow: &mut dyn UnitOfWork,
        job: &Job,
        output: &Value,
    ) -> Result<()> {
        self.0.record(cx, uow, job, output).await?;
        let change = DeploymentChange {
            status: Some(DeploymentStatus::Uploading),
            ..DeploymentChange::default()
        };
        change_of(cx, uow, job, &change).await
    }
}

/// Hands the site to the provider.
#[derive(Debug)]
pub(super) struct Upload(pub(super) Arc<dyn SiteArchives>);

#[async_trait]
impl JobStep for Upload {
    async fn observe(&self, cx: &StepContext<'_>) -> Result<Observation, StepError> {
        let found = at_provider(cx).await?;
        Ok(found.map_or(Observation::Absent, |d| Observation::Present(output(&d))))
    }

    async fn apply(&self, cx: &StepContext<'_>) -> Result<Value, StepError> {
        let input: DeployInput = read_input(cx.job)?;
        let upload = cx.blobs.get(&blob_key(&input.deployment_id)).await?;
        let files = self.0.unpack(upload).await.map_err(unfit)?;
        cx.guard().await?;
        let upload = SiteUpload {
            project: input.project,
            branch: input.branch,
            deployment_key: input.deployment_id.to_string(),
            files,
        };
        let deployed = cx.infrastructure.deploy_site(upload).await?;
        Ok(output(&deployed))
    }

    async fn record(
        &self,
        cx: &Context,
        uow: &mut dyn UnitOfWork,
        job: &Job,
        output: &Value,
    ) -> Result<()> {
        let change = DeploymentChange {
            status: Some(DeploymentStatus::Deploying),
            cf_deployment_id: text(output, "cfDeploymentId"),
            ..DeploymentChange::default()
        };
        change_of(cx, uow, job, &change).await
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(600)
    }
}

/// The upload was checked when it came in, so this is a damaged one.
fn unfit(error: SiteError) -> StepError {
    StepError::permanent("INVALID_UPLOAD", error.to_string())
}

/// Waits until the provider serves the site.
#[derive(Debug)]
pub(super) struct Activate;

#[async_trait]
impl JobStep for Activate {
    async fn observe(&self, cx: &StepContext<'_>) -> Result<Observation, StepError> {
        let Some(found) = at_provider(cx).await? else {
            return Ok(Observation::Absent);
        };
        match &found.state {
            SiteState::Active => Ok(Observation::Present(output(&found))),
            SiteState::Failed(why) => Err(StepError::permanent("DEPLOYMENT_FAILED", why)),
            SiteState::Deploying => Err(wait(cx).await?),
        }
    }

    async fn apply(&self, _cx: &StepContext<'_>) -> Result<Value, StepError> {
        Err(StepError::permanent(
            "DEPLOYMENT_LOST",
            "the provider does not know the deployment any more",
        ))
    }

    async fn record(
        &self,
        cx: &Context,
        uow: &mut dyn UnitOfWork,
        job: &Job,
        output: &Value,
    ) -> Result<()> {
        let change = DeploymentChange {
            status: Some(DeploymentStatus::Active),
            cf_deployment_id: text(output, "cfDeploymentId"),
            url: text(output, "url"),
            ..DeploymentChange::default()
        };
        change_of(cx, uow, job, &change).await
    }
}

/// To look again soon, unless the provider has had its time.
async fn wait(cx: &StepContext<'_>) -> Result<StepError, StepError> {
    let input: DeployInput = read_input(cx.job)?;
    let mut uow = cx.store.begin(Mode::Auto).await?;
    let now: Timestamp = uow.now().await?;
    let found = look_up_deployment(uow.as_mut(), &input.deployment_id).await?;
    let began = found.and_then(|d| d.started_at).unwrap_or(now);
    if now.since(began) > STUCK_AFTER {
        let message = "the provider did not serve the site within 15 minutes";
        return Ok(StepError::permanent("TIMEOUT", message));
    }
    Ok(StepError::Wait {
        until: now.plus(POLL),
        reason: "the provider to serve the site".to_owned(),
    })
}

/// Forgets the upload.
#[derive(Debug)]
pub(super) struct Cleanup;

#[async_trait]
impl JobStep for Cleanup {
    async fn observe(&self, _cx: &StepContext<'_>) -> Result<Observation, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_>) -> Result<Value, StepError> {
        let input: DeployInput = read_input(cx.job)?;
        cx.blobs.remove(&blob_key(&input.deployment_id)).await?;
        Ok(json!({}))
    }
}

async fn at_provider(cx: &StepContext<'_>) -> Result<Option<SiteDeployment>, StepError> {
    let input: DeployInput = read_input(cx.job)?;
    let key = input.deployment_id.as_str();
    Ok(cx
        .infrastructure
        .site_deployment(&input.project, key)
        .await?)
}

fn output(deployed: &SiteDeployment) -> Value {
    json!({ "cfDeploymentId": deployed.id, "url": deployed.url })
}

fn text(output: &Value, field: &str) -> Option<String> {
    output[field].as_str().map(str::to_owned)
}

async fn change_of(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    job: &Job,
    change: &DeploymentChange,
) -> Result<()> {
    let input: DeployInput = read_input(job)?;
    change_deployment(&as_asked_by(cx, job), uow, &input.deployment_id, change).await?;
    Ok(())
}
