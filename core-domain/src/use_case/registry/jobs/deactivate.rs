//! `feature.deactivate`: removes the worker of an entity's feature.

use async_trait::async_trait;

use super::feature_target::FeatureTarget;
use super::resource::observe_owned;
use crate::kernel::Result;
use crate::port::{ProviderError, UnitOfWork};
use crate::registry::{FeatureEvent, ProviderName, Resource, ResourceQuery, ResourceType};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError, Steps,
};
use crate::use_case::registry::{feature, resource};

/// The kind.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct Deactivate;

#[async_trait]
impl JobKind for Deactivate {
    const NAME: &'static str = "feature.deactivate";
    type Input = FeatureTarget;

    fn steps() -> Steps<Self> {
        Steps::new().then(RemoveWorker)
    }

    async fn completed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        follow(cx, uow, FeatureEvent::Deactivated).await
    }

    async fn failed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        follow(cx, uow, FeatureEvent::Fail).await
    }

    async fn resumed(&self, cx: &JobContext<'_, Self>, uow: &mut dyn UnitOfWork) -> Result<()> {
        follow(cx, uow, FeatureEvent::Deactivate).await
    }
}

/// Moves the feature as the job moved.
async fn follow(
    cx: &JobContext<'_, Deactivate>,
    uow: &mut dyn UnitOfWork,
    event: FeatureEvent,
) -> Result<()> {
    let Some(platform) = cx.platform(uow).await? else {
        return Ok(());
    };
    let own = (&cx.input.activation_id, &cx.job.id);
    feature::record_event(cx, &platform, uow, own, event, None).await
}

/// Removes the feature's worker, and its entry.
#[derive(Clone, Copy, Debug)]
struct RemoveWorker;

#[async_trait]
impl JobStep<Deactivate> for RemoveWorker {
    type Output = ();

    fn name(&self) -> &'static str {
        "worker"
    }

    /// What is missing is removed, and so is what belongs to something else.
    async fn observe(
        &self,
        cx: &StepContext<'_, Deactivate>,
    ) -> Result<Observation<()>, StepError> {
        let target = &cx.input;
        target.ensure_called_for(cx).await?;
        let worker = target.worker();
        let found = observe_owned(cx.infrastructure, &target.platform_id, &worker).await?;
        Ok(match found {
            Observation::Present(_) => Observation::Absent,
            Observation::Absent | Observation::Conflict(_) => Observation::Present(()),
        })
    }

    async fn apply(&self, cx: &StepContext<'_, Deactivate>) -> Result<(), StepError> {
        let target = &cx.input;
        let owner = target.platform_id.as_str();
        match cx.infrastructure.remove(&target.worker(), owner).await {
            Err(ProviderError::NameTaken(_)) => Ok(()),
            outcome => Ok(outcome?),
        }
    }

    async fn record(
        &self,
        cx: &JobContext<'_, Deactivate>,
        uow: &mut dyn UnitOfWork,
        (): &(),
    ) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        let target = &cx.input;
        let Ok(cf_name) = ProviderName::parse(&target.cf_name) else {
            return Ok(());
        };
        let exactly = ResourceQuery::Exactly {
            resource_type: ResourceType::Worker,
            environment: target.environment,
            cf_name,
        };
        match platform.records::<Resource>(uow).first(&exactly).await? {
            Some(entry) => resource::soft_delete(cx, &platform, uow, &entry).await,
            None => Ok(()),
        }
    }
}
