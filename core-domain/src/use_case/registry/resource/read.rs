//! Finding resources.

use super::rules::not_deleted;
use crate::access::{Batches, authorize};
use crate::access::{OrganizationScope, PlatformScope, Reach, authorize_operator, unowned};
use crate::kernel::{
    Context, DeletedFilter, EntityId, Error, ListQuery, Page, Record, ResourceId, Result, Stored,
    grant,
};
use crate::port::UnitOfWork;
use crate::registry::{Platform, PlatformQuery, Resource, ResourceQuery};
use crate::use_case::registry::entity;

/// The resources of a platform, newest first.
///
/// # Errors
/// `INVALID_CURSOR`.
pub async fn list(
    cx: &Context,
    scope: &PlatformScope<grant::ResourceRead>,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<DeletedFilter>,
) -> Result<Page<Stored<Resource>>> {
    let all = ResourceQuery::All {
        deleted: query.filter.include_deleted && cx.caller.is_operator(),
    };
    scope
        .records::<Resource>(uow)
        .page(&all, &query.page())
        .await
}

/// The resources of an entity, newest first.
///
/// # Errors
/// `NOT_FOUND` for an unknown entity; `INVALID_CURSOR`.
pub async fn list_of_entity(
    cx: &Context,
    scope: &PlatformScope<grant::ResourceRead>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
    query: &ListQuery<DeletedFilter>,
) -> Result<Page<Stored<Resource>>> {
    entity::not_deleted(scope, uow, entity).await?;
    let of_entity = ResourceQuery::OfEntity {
        entity_id: entity.clone(),
        deleted: query.filter.include_deleted && cx.caller.is_operator(),
    };
    scope
        .records::<Resource>(uow)
        .page(&of_entity, &query.page())
        .await
}

/// A resource that is not deleted.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn get(
    scope: &PlatformScope<grant::ResourceRead>,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<Stored<Resource>> {
    not_deleted(scope, uow, resource).await
}

/// The newest resource with this name at the provider that is not deleted, of those the caller reaches. Among several
/// platforms of an organization the one that was created last counts; suspended ones are passed over.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn look_up(
    cx: &Context,
    scope: &OrganizationScope<grant::ResourceRead>,
    uow: &mut dyn UnitOfWork,
    cf_name: &str,
) -> Result<Stored<Resource>> {
    let named = ResourceQuery::Named(cf_name.to_owned());
    let missing = Error::NotFound(Resource::KIND);
    let platforms = match scope.reach() {
        Reach::Nowhere => return Err(missing),
        Reach::Installation => {
            let everywhere = authorize_operator(cx)?.records::<Resource>(uow);
            return everywhere.first(&named).await?.ok_or(missing);
        }
        Reach::Organization(organization) => PlatformQuery::Of(organization.clone()),
        Reach::Platform(platform) => PlatformQuery::WithId(platform.clone()),
    };
    let mut reached = Batches::<Platform>::of(platforms);
    while let Some(batch) = reached.next(unowned(uow)).await? {
        for platform in batch {
            let Ok(scope) = authorize::<grant::ResourceRead>(cx, uow, &platform.id).await else {
                continue;
            };
            if let Some(found) = scope.records::<Resource>(uow).first(&named).await? {
                return Ok(found);
            }
        }
    }
    Err(missing)
}
