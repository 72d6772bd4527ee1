//! What the jobs that deploy sites have in common: their inputs, and the deployment record that they update.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::access::PlatformAccess;
use crate::kernel::{
    DeploymentId, Environment, Patch, PlatformId, PlatformOwned, Result, Stored, Timestamp,
};
use crate::port::{Mode, SiteDeployment, UnitOfWork};
use crate::provisioning::{FailureKind, JobStatus, LaneKey};
use crate::registry::{Branch, BuildOutcome, Deployment, DeploymentChange, DeploymentStatus};
use crate::use_case::provisioning::{JobContext, JobInput, JobKind, StepContext, StepError};
use crate::use_case::registry::{HasTarget, Target, build, deployment};

/// Returns the target of the jobs that deploy sites of a platform.
pub(super) fn site_target(scope: &PlatformAccess) -> Target {
    let platform = scope.platform();
    Target {
        platform_id: platform.id.clone(),
        slug: platform.slug.clone(),
        entity_id: None,
        environment: Environment::Prod,
        plan_tier: platform.tier.as_str().to_owned(),
        billing_email: None,
    }
}

/// The input of a deployment job. If an operator retries the job, a new deployment record is created; the upload
/// remains that of the first deployment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeployInput {
    /// The requested deployment. Its id names the upload.
    pub(super) deployment_id: DeploymentId,
    pub(super) project: String,
    pub(super) branch: Branch,
    /// Whether the upload has only the files that the provider did not have.
    #[serde(default)]
    pub(super) is_planned: bool,
    #[serde(flatten)]
    pub(super) target: Target,
}

/// The input of the job. The deployment record has the branch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RedeployInput {
    /// The deployment whose content is deployed again.
    pub(super) source_id: DeploymentId,
    #[serde(flatten)]
    pub(super) target: Target,
}

macro_rules! of_site {
    ($($input:ty),+) => {$(
        impl HasTarget for $input {
            fn target(&self) -> &Target {
                &self.target
            }
        }

        impl JobInput for $input {
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
    )+};
}

of_site!(DeployInput, RedeployInput);

/// The deployment at the provider.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProviderDeployment {
    pub(super) cf_deployment_id: String,
    url: String,
    #[serde(default)]
    permalink: Option<String>,
}

impl From<SiteDeployment> for ProviderDeployment {
    fn from(found: SiteDeployment) -> Self {
        Self {
            cf_deployment_id: found.id,
            url: found.url,
            permalink: found.permalink,
        }
    }
}

/// Returns the deployment that the job currently works on.
pub(super) async fn current<K: JobKind>(
    cx: &StepContext<'_, K>,
) -> Result<Stored<Deployment>, StepError> {
    let (mut uow, platform) = cx.read().await?;
    let platform = platform.ok_or_else(deployment_canceled)?;
    let found = deployment::of_job(&platform, uow.as_mut(), &cx.job.id).await?;
    found.ok_or_else(deployment_canceled)
}

pub(super) fn deployment_canceled() -> StepError {
    StepError::Precondition("the deployment was canceled".to_owned())
}

/// Changes the deployment that the job currently works on. If the change ends it, its build ends too.
pub(super) async fn change_current<K>(
    cx: &JobContext<'_, K>,
    uow: &mut dyn UnitOfWork,
    change: &DeploymentChange,
) -> Result<()>
where
    K: JobKind<Input: JobInput<Owner = PlatformOwned>>,
{
    let found = deployment::of_job(&cx.scope, uow, &cx.job.id).await?;
    let found = found.ok_or_else(deployment::missing)?;
    let changed = deployment::apply_change(cx, &cx.scope, uow, &found.id, change).await?;
    if !changed.status.is_terminal() {
        return Ok(());
    }
    let end = BuildOutcome::of(&changed);
    build::end(cx, &cx.scope, uow, &cx.job.id, end).await
}

/// Records that the provider serves the current deployment of the job.
pub(super) async fn record_activation<K>(
    cx: &JobContext<'_, K>,
    uow: &mut dyn UnitOfWork,
    output: &ProviderDeployment,
) -> Result<()>
where
    K: JobKind<Input: JobInput<Owner = PlatformOwned>>,
{
    let change = DeploymentChange {
        status: Some(DeploymentStatus::Active),
        cf_deployment_id: Patch::Set(output.cf_deployment_id.clone()),
        url: Patch::Set(output.url.clone()),
        permalink: output.permalink.clone().map_or(Patch::Keep, Patch::Set),
        ..DeploymentChange::default()
    };
    change_current(cx, uow, &change).await
}

/// Ends the deployment with the outcome of its job, unless it has ended, and ends its build. Returns whether the
/// deployment had already ended.
pub(super) async fn end_with_job<K>(
    cx: &JobContext<'_, K>,
    uow: &mut dyn UnitOfWork,
) -> Result<bool>
where
    K: JobKind<Input: JobInput<Owner = PlatformOwned>>,
{
    let status = match (cx.job.status, cx.job.failure_kind) {
        (JobStatus::Completed, _) => DeploymentStatus::Active,
        (_, Some(FailureKind::Cancelled)) => DeploymentStatus::Canceled,
        _ => DeploymentStatus::Failure,
    };
    let error = cx.job.error.as_ref();
    let message = error.map(|error| format!("{}: {}", error.code, error.message));
    let message = message.or_else(|| cx.job.reason.clone());
    let message = message.filter(|_| status != DeploymentStatus::Active);
    let change = DeploymentChange {
        status: Some(status),
        error_message: message.map_or(Patch::Keep, Patch::Set),
        ..DeploymentChange::default()
    };
    end(cx, uow, &change).await
}

/// Ends the deployment unless it has ended, and ends its build with the same outcome. Returns whether the deployment
/// had already ended.
async fn end<K>(
    cx: &JobContext<'_, K>,
    uow: &mut dyn UnitOfWork,
    change: &DeploymentChange,
) -> Result<bool>
where
    K: JobKind<Input: JobInput<Owner = PlatformOwned>>,
{
    let Some(found) = deployment::of_job(&cx.scope, uow, &cx.job.id).await? else {
        return Ok(false);
    };
    let ended_before = found.status.is_terminal();
    let ended = if ended_before {
        found
    } else {
        deployment::apply_change(cx, &cx.scope, uow, &found.id, change).await?
    };
    build::end(cx, &cx.scope, uow, &cx.job.id, BuildOutcome::of(&ended)).await?;
    Ok(ended_before)
}

/// The pause between two queries of the provider about whether a site is served.
const POLL: Duration = Duration::from_secs(2);

/// Returns the error that repeats the step after a short pause, or a permanent one if the provider took more than 15
/// minutes.
pub(super) async fn retry_or_time_out<K: JobKind>(
    cx: &StepContext<'_, K>,
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
        output: None,
    })
}

/// Returns a queued deployment with the content of an earlier one. It still has the id and the key of the earlier one.
pub(super) fn new_attempt(earlier: &Deployment, now: Timestamp) -> Deployment {
    Deployment {
        cf_deployment_id: None,
        url: None,
        permalink: None,
        error_message: None,
        status: DeploymentStatus::Queued,
        started_at: None,
        completed_at: None,
        pinned_at: None,
        created_at: now,
        updated_at: now,
        ..earlier.clone()
    }
}
