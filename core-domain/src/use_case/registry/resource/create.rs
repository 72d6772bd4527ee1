//! Entering resources.

use super::names::{ensure_not_reserved, owner_of};
use super::rules::{check_job, name_conflict};
use crate::access::{PlatformScope, audited, ensure_room_unless_operator};
use crate::kernel::{Context, EntityId, ResourceId, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::registry::{CreateResource, Resource, ResourceQuery};
use crate::use_case::registry::entity;

/// Enters a resource. A store whose service name is the id of a feature in use belongs to that feature, and goes with its data.
///
/// # Errors
/// `NOT_FOUND` for an unknown entity, and for a job of another platform; `CONFLICT` when the name is taken, or reserved for the
/// jobs of another platform or feature;
/// `INVALID_STATE` below a suspended entity; `VALIDATION_ERROR` for settings that are too large;
/// `LIMIT_REACHED`.
pub async fn create(
    cx: &Context,
    scope: &PlatformScope<grant::ResourceWrite>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    command: CreateResource,
) -> Result<Stored<Resource>> {
    let entity = entity::not_deleted(scope, uow, entity).await?;
    entity::ensure_not_suspended(scope, uow, &entity).await?;
    check_job(scope, uow, command.provision_job_id.as_ref()).await?;
    let existing = ResourceQuery::All { deleted: false };
    let resources = scope.records::<Resource>(uow);
    let limit = cx.limits.resources_per_platform;
    let message = "The platform has as many resources as it may have. Delete one first.";
    ensure_room_unless_operator(cx, resources, &existing, limit, message).await?;
    let now = uow.now().await?;
    let id = ResourceId::generate(now, cx.entropy.as_ref());
    let mut resource = Resource::create(id, scope.platform(), entity.id.clone(), command, now);
    ensure_not_reserved(scope, uow, &resource).await?;
    resource.feature_activation_id = owner_of(scope, uow, &resource).await?;
    let stored = audited::insert(cx, scope, uow, resource, "resource.created").await;
    stored.map_err(name_conflict)
}
