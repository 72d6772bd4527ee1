//! Finds the registry's records of objects at the provider by their names.

use crate::access::{Batches, PlatformAccess};
use crate::kernel::{Environment, Result, Stored, Timestamp};
use crate::port::{ResourceRef, UnitOfWork};
use crate::registry::{ProviderName, Resource, ResourceQuery};

/// Returns the resource of an object; `None` if there is none or it is deleted.
pub(in crate::use_case::registry) async fn find_resource(
    platform: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    object: &ResourceRef,
) -> Result<Option<Stored<Resource>>> {
    let Ok(cf_name) = ProviderName::parse(&object.name) else {
        return Ok(None);
    };
    let exactly = ResourceQuery::Exactly {
        resource_type: object.resource_type,
        cf_name,
    };
    platform.records::<Resource>(uow).first(&exactly).await
}

/// The state of an object in the registry of a platform.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ObjectRecords {
    /// Whether a resource that is not deleted exists for the object.
    pub(super) is_entered: bool,
    /// The environment of its newest resource, including deleted ones.
    pub(super) environment: Option<Environment>,
    /// The time of the last deletion of a resource for the object.
    pub(super) deleted_at: Option<Timestamp>,
}

impl ObjectRecords {
    /// Reads the state of an object from all resources that ever had its name.
    pub(super) async fn of(
        platform: &PlatformAccess,
        uow: &mut dyn UnitOfWork,
        object: &ResourceRef,
    ) -> Result<Self> {
        let named = ResourceQuery::EverNamed(object.name.clone());
        let mut entries = Batches::<Resource>::of(named);
        let mut known = Self::default();
        while let Some(batch) = entries.next(platform.records(uow)).await? {
            let of_type = batch
                .iter()
                .filter(|entry| entry.resource_type == object.resource_type);
            // The query returns the newest resource first.
            for entry in of_type {
                known.is_entered |= entry.deleted_at.is_none();
                known.environment = known.environment.or(Some(entry.environment));
                known.deleted_at = known.deleted_at.max(entry.deleted_at);
            }
        }
        Ok(known)
    }
}
