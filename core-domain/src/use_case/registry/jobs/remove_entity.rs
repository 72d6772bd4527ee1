//! `entity.remove`: removes the objects of entities that were deleted in a cascade, one step for each resource type, in
//! the reverse order of creation.
//!
//! The resources are already deleted at that time. They store the id of the job that removes their objects.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::object::ObjectRecords;
use super::removal::{Attempt, RemoveObjects, RemovedObjects, RemovesObjects};
use crate::kernel::{EntityId, PlatformId, PlatformOwned, Result};
use crate::port::{ResourceRef, UnitOfWork};
use crate::provisioning::LaneKey;
use crate::registry::{DEFAULT_RESOURCES, ResourceQuery, ResourceType};
use crate::use_case::provisioning::{JobContext, JobInput, JobKind, StepError, Steps};
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
        Steps::new().steps(newest_first.map(|(of_type, _)| RemoveObjects(ObjectsOfType(of_type))))
    }
}

/// The objects of one type.
#[derive(Clone, Copy, Debug)]
struct ObjectsOfType(ResourceType);

#[async_trait]
impl RemovesObjects<RemoveEntity> for ObjectsOfType {
    fn name(&self) -> &'static str {
        self.0.as_str()
    }

    /// Keeps an object for which a person or another job has created a new resource.
    async fn remove(&self, attempt: &mut Attempt<'_, '_, RemoveEntity>) -> Result<(), StepError> {
        let cx = attempt.cx();
        let to_remove = ResourceQuery::ToRemove {
            job_id: cx.job.id.clone(),
            resource_type: self.0,
        };
        for resource in attempt.portion_of(to_remove, |_| true).await? {
            let object = ResourceRef {
                resource_type: self.0,
                name: resource.cf_name.to_string(),
            };
            let (mut uow, Some(platform)) = cx.read().await? else {
                return Ok(());
            };
            let known = ObjectRecords::of(&platform, uow.as_mut(), &object).await?;
            drop(uow);
            if known.is_entered {
                attempt.add_resource(&resource).await?;
            } else {
                attempt.remove_resource(&resource).await?;
            }
        }
        Ok(())
    }

    async fn record(
        &self,
        cx: &JobContext<'_, RemoveEntity>,
        uow: &mut dyn UnitOfWork,
        removed: &RemovedObjects,
    ) -> Result<()> {
        for id in &removed.resources {
            resource::record_removal(cx, &cx.scope, uow, id, &cx.job.id).await?;
        }
        Ok(())
    }
}
