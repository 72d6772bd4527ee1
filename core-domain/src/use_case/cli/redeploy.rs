//! Rollbacks and promotions: new deployments with the content of an earlier one, without an upload.

use std::time::Duration;

use async_trait::async_trait;

use super::deploy::{DeployOutcome, ensure_ready_to_deploy};
use super::site_job::{
    ProviderDeployment, RedeployInput, current, end_with_job, new_attempt, record_activation,
    retry_or_time_out, site_target,
};
use crate::access::PlatformScope;
use crate::kernel::{Code, Context, DeploymentId, Error, Result, Stored, permission};
use crate::port::{SiteRedeploy, SiteState, UnitOfWork};
use crate::registry::{Branch, BuildTrigger, Deployment, DeploymentStatus};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError, Steps, enqueue,
};
use crate::use_case::registry::{build, deployment};

type Creates = PlatformScope<permission::DeploymentCreate>;

/// Makes the content of an earlier deployment live on its branch again. Queues a new deployment without an upload.
/// Nothing is queued if the content is live already.
///
/// # Errors
/// - `NOT_FOUND` if the platform has no such deployment.
/// - `INVALID_STATE` if the deployment was never active, or the platform is neither active nor suspended.
/// - `CONFLICT` while another deployment of the branch has not ended, or if the branch is `production` and a deployment
///   is pinned.
/// - `VERSION_CONFLICT` if `If-Match` does not match.
/// - `LIMIT_REACHED` if too many deployments or jobs are open.
pub async fn roll_back(
    cx: &Context,
    scope: &Creates,
    uow: &mut dyn UnitOfWork,
    source: &DeploymentId,
) -> Result<DeployOutcome> {
    let source = active_source(cx, scope, uow, source).await?;
    let branch = source.branch.clone();
    redeploy(cx, scope, uow, &source, branch).await
}

/// Makes the content of a preview live on `production`. Queues a new deployment without an upload. Nothing is queued if
/// the content is live already.
///
/// # Errors
/// Those of [`roll_back`], and `INVALID_STATE` if the deployment is not a preview.
pub async fn promote(
    cx: &Context,
    scope: &Creates,
    uow: &mut dyn UnitOfWork,
    source: &DeploymentId,
) -> Result<DeployOutcome> {
    let source = active_source(cx, scope, uow, source).await?;
    if source.is_production() {
        let message = "This is a deployment of production. Roll back to it instead.";
        return Err(Error::refused(Code::InvalidState, message));
    }
    redeploy(cx, scope, uow, &source, Branch::production()).await
}

/// Returns the deployment whose content is deployed again.
async fn active_source(
    cx: &Context,
    scope: &Creates,
    uow: &mut dyn UnitOfWork,
    source: &DeploymentId,
) -> Result<Stored<Deployment>> {
    ensure_ready_to_deploy(scope)?;
    let found = deployment::find(scope, uow, source).await?;
    let source = found.ok_or_else(deployment::missing)?;
    cx.check_if_match(&source)?;
    if source.status == DeploymentStatus::Active {
        return Ok(source);
    }
    let message = "Only a deployment that was active can be deployed again.";
    Err(Error::refused(Code::InvalidState, message))
}

async fn redeploy(
    cx: &Context,
    scope: &Creates,
    uow: &mut dyn UnitOfWork,
    source: &Stored<Deployment>,
    branch: Branch,
) -> Result<DeployOutcome> {
    if let Some(live) = deployment::live(scope, uow, &branch).await?
        && live.content_id() == source.content_id()
    {
        return Ok(DeployOutcome::Replayed(live));
    }
    deployment::ensure_none_in_flight(scope, uow, &branch).await?;
    let now = uow.now().await?;
    let id = DeploymentId::generate(now, cx.entropy.as_ref());
    let input = RedeployInput {
        source_id: source.content_id().clone(),
        target: site_target(scope),
    };
    let job = enqueue::<RedeploySite>(cx, scope.writer(), uow, &input).await?;
    let (environment, trigger) = (input.target.environment, BuildTrigger::Manual);
    build::begin(cx, scope.writer(), uow, &job.id, environment, trigger).await?;
    let again = Deployment {
        idempotency_key: id.to_string(),
        id,
        user_id: cx.caller.actor_id().to_owned(),
        branch,
        job_id: Some(job.id.clone()),
        source_id: Some(input.source_id),
        ..new_attempt(source, now)
    };
    let stored = deployment::create(cx, scope.writer(), uow, again).await?;
    Ok(DeployOutcome::New(stored))
}

/// The job kind that deploys the content of an earlier deployment again.
#[derive(Clone, Copy, Debug)]
pub(super) struct RedeploySite;

#[async_trait]
impl JobKind for RedeploySite {
    const NAME: &'static str = "deploy.again";
    type Input = RedeployInput;

    fn steps() -> Steps<Self> {
        Steps::new().step(Switch)
    }

    async fn on_completed(
        &self,
        cx: &JobContext<'_, Self>,
        uow: &mut dyn UnitOfWork,
    ) -> Result<()> {
        end_with_job(cx, uow).await.map(drop)
    }

    async fn on_failed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        end_with_job(cx, uow).await.map(drop)
    }

    /// Refuses to retry a deployment that has ended. The caller rolls back again instead.
    async fn on_resumed(&self, _: &JobContext<'_, Self>, _: &mut dyn UnitOfWork) -> Result<()> {
        let message = "A rollback or promotion is not retried. Request it again.";
        Err(Error::refused(Code::InvalidState, message))
    }
}

/// Makes the earlier content live at the provider.
#[derive(Clone, Copy, Debug)]
struct Switch;

#[async_trait]
impl JobStep<RedeploySite> for Switch {
    type Output = ProviderDeployment;

    fn name(&self) -> &'static str {
        "switch"
    }

    /// The provider treats repeated requests as one, so there is nothing to observe.
    async fn observe(
        &self,
        _cx: &StepContext<'_, RedeploySite>,
    ) -> Result<Observation<ProviderDeployment>, StepError> {
        Ok(Observation::Absent)
    }

    async fn apply(
        &self,
        cx: &StepContext<'_, RedeploySite>,
    ) -> Result<ProviderDeployment, StepError> {
        let deployment = current(cx).await?;
        let source = source_of(cx).await?;
        cx.guard().await?;
        let request = SiteRedeploy {
            project: deployment.project_name.clone(),
            branch: deployment.branch.to_string(),
            deployment_key: deployment.id.to_string(),
            source_key: source.id.to_string(),
            source_branch: source.branch.to_string(),
            source_id: source.cf_deployment_id.clone(),
        };
        let found = cx.infrastructure.redeploy_site(&request).await?;
        match &found.state {
            SiteState::Active => Ok(found.into()),
            SiteState::Failed(why) => Err(StepError::permanent("DEPLOYMENT_FAILED", why)),
            SiteState::Deploying => Err(retry_or_time_out(cx, &deployment).await?),
        }
    }

    async fn record(
        &self,
        cx: &JobContext<'_, RedeploySite>,
        uow: &mut dyn UnitOfWork,
        output: &ProviderDeployment,
    ) -> Result<()> {
        record_activation(cx, uow, output).await
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(120)
    }
}

/// Returns the deployment whose content is deployed again.
async fn source_of(cx: &StepContext<'_, RedeploySite>) -> Result<Stored<Deployment>, StepError> {
    let (mut uow, platform) = cx.read().await?;
    let missing =
        || StepError::permanent("SOURCE_MISSING", "the earlier deployment does not exist");
    let platform = platform.ok_or_else(missing)?;
    let found = deployment::find(&platform, uow.as_mut(), &cx.input.source_id).await?;
    found.ok_or_else(missing)
}
