//! `feature.deactivate`: removes the worker of an entity's feature, and its data when that is wanted.

use async_trait::async_trait;

use super::feature_target::{DeactivateInput, FeatureTarget};
use super::removal::{
    RemovedObjects, delete_entries, delete_entry, remove_if_owned, remove_objects,
};
use super::resource::observe_owned;
use super::stack_target::StackTarget;
use crate::access::{Batches, PlatformAccess};
use crate::kernel::{Result, Stored, Timestamp};
use crate::port::{Mode, UnitOfWork};
use crate::registry::{FeatureEvent, Resource, ResourceQuery};
use crate::stacks::{PartId, PartName};
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
            Observation::Present(_) => Observation::Absent,
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

/// Removes the feature's data: the stores of its entity in its environment that are there for it.
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
        let mut uow = cx.store.begin(Mode::Read).await?;
        let as_of = uow.now().await?;
        let stores = match cx.platform(uow.as_mut()).await? {
            Some(platform) => stores_of(&platform, uow.as_mut(), target, as_of).await?,
            None => Vec::new(),
        };
        drop(uow);
        remove_objects(cx, &target.platform_id, &stores, as_of).await
    }

    async fn record(
        &self,
        cx: &JobContext<'_, Deactivate>,
        uow: &mut dyn UnitOfWork,
        output: &RemovedObjects,
    ) -> Result<()> {
        let Some(platform) = cx.platform(uow).await? else {
            return Ok(());
        };
        let stores = stores_of(&platform, uow, &cx.input.target, output.as_of).await?;
        delete_entries(cx, &platform, uow, stores).await
    }
}

/// The stores of a feature that were entered up to an instant.
pub(in crate::use_case::registry) async fn stores_of(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    target: &FeatureTarget,
    as_of: Timestamp,
) -> Result<Vec<Stored<Resource>>> {
    let of_entity = ResourceQuery::OfEntity {
        entity_id: target.entity_id.clone(),
        deleted: false,
    };
    let mut stores = Vec::new();
    let mut resources = Batches::<Resource>::of(of_entity);
    while let Some(batch) = resources.next(platform.records(uow)).await? {
        let own = batch.into_iter().filter(|entry| {
            entry.resource_type.is_store()
                && entry.environment == target.environment
                && entry.service_name.as_str() == target.feature_id.as_str()
                && entry.created_at <= as_of
                && !is_part_of_a_stack(platform, entry)
        });
        stores.extend(own);
    }
    Ok(stores)
}

/// Whether a store was made for a workspace stack, whose part may be called as a feature is.
fn is_part_of_a_stack(platform: &PlatformAccess, entry: &Resource) -> bool {
    let (Some(stack), Ok(name)) = (
        &entry.stack_id,
        PartName::parse(entry.service_name.as_str()),
    ) else {
        return false;
    };
    let target = StackTarget {
        platform_id: platform.id().clone(),
        slug: platform.platform().slug.clone(),
        entity_id: entry.entity_id.clone(),
        environment: entry.environment,
        stack_instance_id: stack.clone(),
    };
    [false, true].into_iter().any(|of_app| {
        let part = PartId {
            resource_type: entry.resource_type,
            name: name.clone(),
            of_app,
        };
        target.name_of(&part) == entry.cf_name.as_str()
    })
}
