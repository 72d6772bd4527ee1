//! `entity.remove`: removes the objects of entities that were deleted in a cascade, one step for each resource type, in
//! the reverse order of creation.
//!
//! The resources are already deleted at that time. They store the id of the job that removes their objects.

use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::platform_provision::ObjectRecords;
use super::removal::{Attempt, RemovedObjects, TIMEOUT, portion_of};
use crate::kernel::{EntityId, PlatformId, PlatformOwned, Result};
use crate::port::{Mode, ResourceRef, UnitOfWork};
use crate::provisioning::LaneKey;
use crate::registry::{DEFAULT_RESOURCES, ResourceQuery, ResourceType};
use crate::use_case::provisioning::{
    JobContext, JobInput, JobKind, JobStep, Observation, StepContext, StepError, Steps,
};
use crate::use_case::registry::resource;

/// The input of the job: the deleted entity. The objects of the entities below it are removed too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::use_case::registry) struct DeletedEntity {
    pub(in crate::use_case::registry) platform_id: PlatformId,
    pub(in crate::use_case::registry) entity_id: EntityId,
}

impl JobInput for DeletedEntity {
    type Owner = PlatformOwned;

    fn lane(&self) -> LaneKey {
        LaneKey::platform(&self.platform_id)
    }

    fn platform_id(&self) -> Option<&PlatformId> {
        Some(&self.platform_id)
    }

    fn entity_id(&self) -> Option<&EntityId> {
        Some(&self.entity_id)
    }
}

/// The job kind `entity.remove`.
#[derive(Clone, Copy, Debug)]
pub(in crate::use_case::registry) struct RemoveEntity;

impl JobKind for RemoveEntity {
    const HAS_HOOKS: bool = false;
    const NAME: &'static str = "entity.remove";
    type Input = DeletedEntity;

    fn steps() -> Steps<Self> {
        let newest_first = DEFAULT_RESOURCES.into_iter().rev();
        Steps::new().steps(newest_first.map(|(resource_type, _)| RemoveObjects(resource_type)))
    }
}

/// Removes the objects of one type.
#[derive(Clone, Copy, Debug)]
struct RemoveObjects(ResourceType);

#[async_trait]
impl JobStep<RemoveEntity> for RemoveObjects {
    type Output = RemovedObjects;

    fn name(&self) -> &'static str {
        self.0.as_str()
    }

    async fn observe(
        &self,
        _cx: &StepContext<'_, RemoveEntity>,
    ) -> Result<Observation<RemovedObjects>, StepError> {
        Ok(Observation::Absent)
    }

    /// Keeps an object for which a person or another job has created a new resource.
    async fn apply(&self, cx: &StepContext<'_, RemoveEntity>) -> Result<RemovedObjects, StepError> {
        let mut attempt = Attempt::begin(cx, &cx.input.platform_id).await?;
        let (mut uow, Some(platform)) = cx.read().await? else {
            return Ok(attempt.finish());
        };
        let to_remove = ResourceQuery::ToRemove {
            job_id: cx.job.id.clone(),
            resource_type: self.0,
        };
        let entries = portion_of(&platform, uow.as_mut(), to_remove, |_| true).await?;
        drop(uow);
        for entry in entries {
            let object = ResourceRef {
                resource_type: self.0,
                name: entry.cf_name.to_string(),
            };
            let mut uow = cx.store.begin(Mode::Read).await?;
            let known = ObjectRecords::of(&platform, uow.as_mut(), &object).await?;
            drop(uow);
            if known.is_entered {
                attempt.add_resource(&entry).await?;
            } else {
                attempt.remove_entry(&entry).await?;
            }
        }
        Ok(attempt.finish())
    }

    async fn record(
        &self,
        cx: &JobContext<'_, RemoveEntity>,
        uow: &mut dyn UnitOfWork,
        output: &RemovedObjects,
    ) -> Result<()> {
        for id in &output.entries {
            resource::record_removal(cx, &cx.scope, uow, id, &cx.job.id).await?;
        }
        Ok(())
    }

    async fn record_wait(
        &self,
        cx: &JobContext<'_, RemoveEntity>,
        uow: &mut dyn UnitOfWork,
        found: &RemovedObjects,
    ) -> Result<()> {
        self.record(cx, uow, found).await
    }

    fn timeout(&self) -> Duration {
        TIMEOUT
    }
}
