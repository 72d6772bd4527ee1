//! `feature.deactivate`: removes the worker of an entity's feature, and its data when that is wanted.

use std::time::Duration;

use async_trait::async_trait;

use super::feature_target::{DeactivateInput, FeatureTarget};
use super::removal::{
    Attempt, RemovedObjects, TIMEOUT, delete_entry, delete_removed, portion_of, remove_if_owned,
};
use super::resource::observe_owned;
use crate::kernel::Result;
use crate::port::{Mode, UnitOfWork};
use crate::registry::{FeatureEvent, Resource, ResourceQuery};
use crate::use_case::provisioning::{
    JobContext, JobKind, JobStep, Observation, StepContext, StepError, Steps,
};
use crate::use_case::registry::feature;

/// The names of the steps.
const WORKER: &str = "worker";
const DATA: &str = "data";

/// The kind.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct Deactivate;

#[async_trait]
impl JobKind for Deactivate {
    const NAME: &'static str = "feature.deactivate";
    type Input = DeactivateInput;

    fn steps() -> Steps<Self> {
        Steps::new().then(RemoveWorker).then(RemoveData)
    }

    fn plan(input: &DeactivateInput) -> Vec<String> {
        let steps = [WORKER, DATA].into_iter();
        let wanted = steps.filter(|step| *step != DATA || input.delete_data);
        wanted.map(str::to_owned).collect()
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
    let own = (&cx.input.target.activation_id, &cx.job.id);
    feature::record_event(cx, &platform, uow, own, event, None).await
}

/// Removes the feature's worker, and its entry.
#[derive(Clone, Copy, Debug)]
struct RemoveWorker;

#[async_trait]
impl JobStep<Deactivate> for RemoveWorker {
    type Output = ();

    fn name(&self) -> &'static str {
        WORKER
    }

    /// What is missing is removed, and so is what belongs to something else.
    async fn observe(
        &self,
        cx: &StepContext<'_, Deactivate>,
    ) -> Result<Observation<()>, StepError> {
        let target = &cx.input.target;
        target.ensure_called_for(cx).await?;
        let worker = target.worker();
        let found = observe_owned(cx.infrastructure, &target.platform_id, &worker).await?;
        Ok(match found {
            Observation::Present(_) | Observation::Outdated => Observation::Absent,
            Observation::Absent | Observation::Conflict(_) => Observation::Present(()),
        })
    }

    async fn apply(&self, cx: &StepContext<'_, Deactivate>) -> Result<(), StepError> {
        let target = &cx.input.target;
        remove_if_owned(cx, &target.platform_id, &target.worker()).await?;
        Ok(())
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
        let target = &cx.input.target;
        match target.entry(&platform, uow).await? {
            Some(entry) => delete_entry(cx, &platform, uow, &entry).await,
            None => Ok(()),
        }
    }
}

/// Removes the feature's data: the stores that it owns.
#[derive(Clone, Copy, Debug)]
struct RemoveData;

#[async_trait]
impl JobStep<Deactivate> for RemoveData {
    type Output = RemovedObjects;

    fn name(&self) -> &'static str {
        DATA
    }

    async fn observe(
        &self,
        cx: &StepContext<'_, Deactivate>,
    ) -> Result<Observation<RemovedObjects>, StepError> {
        cx.input.target.ensure_called_for(cx).await?;
        Ok(Observation::Absent)
    }

    async fn apply(&self, cx: &StepContext<'_, Deactivate>) -> Result<RemovedObjects, StepError> {
        let target = &cx.input.target;
        let mut attempt = Attempt::begin(cx, &target.platform_id).await?;
        let mut uow = cx.store.begin(Mode::Read).await?;
        let until = attempt.began();
        let is_removed = |entry: &Resource| is_data_of(target, entry) && entry.created_at <= until;
        let stores = match cx.platform(uow.as_mut()).await? {
            Some(platform) => {
                portion_of(&platform, uow.as_mut(), owned_by(target), is_removed).await?
            }
            None => Vec::new(),
        };
        drop(uow);
        for store in &stores {
            attempt.remove_entry(store).await?;
        }
        Ok(attempt.finish())
    }

    async fn record(
        &self,
        cx: &JobContext<'_, Deactivate>,
        uow: &mut dyn UnitOfWork,
        output: &RemovedObjects,
    ) -> Result<()> {
        match cx.platform(uow).await? {
            Some(platform) => delete_removed(cx, &platform, uow, output).await,
            None => Ok(()),
        }
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, Deactivate>,
        uow: &mut dyn UnitOfWork,
        found: &RemovedObjects,
    ) -> Result<()> {
        self.record(cx, uow, found).await
    }

    fn timeout(&self) -> Duration {
        TIMEOUT
    }
}

/// The entries that a feature owns.
pub(in crate::use_case::registry) fn owned_by(target: &FeatureTarget) -> ResourceQuery {
    ResourceQuery::OfFeature(target.activation_id.clone())
}

/// Whether one of these entries holds data of the feature.
pub(in crate::use_case::registry) fn is_data_of(target: &FeatureTarget, entry: &Resource) -> bool {
    entry.resource_type.is_store() && entry.environment == target.environment
}
