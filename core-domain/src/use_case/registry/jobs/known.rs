//! What the registry knows of an object by its name, as it is now and as it was.

use crate::access::{Batches, PlatformAccess};
use crate::kernel::{Environment, Result, Timestamp};
use crate::port::{ResourceRef, UnitOfWork};
use crate::registry::{Resource, ResourceQuery};

/// What the registry of a platform knows of an object.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// Whether an entry stands for it.
    pub(super) is_entered: bool,
    /// The environment of its newest entry, deleted or not.
    pub(super) environment: Option<Environment>,
    /// When an entry of it was last deleted.
    pub(super) deleted_at: Option<Timestamp>,
}

impl Known {
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
            // Newest first.
            for entry in of_type {
                known.is_entered |= entry.deleted_at.is_none();
                known.environment = known.environment.or(Some(entry.environment));
                known.deleted_at = known.deleted_at.max(entry.deleted_at);
            }
        }
        Ok(known)
    }
}
