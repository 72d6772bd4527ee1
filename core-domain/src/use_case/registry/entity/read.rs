//! Finding entities.

use super::tree::{ancestors_of, first_descendants_of, not_deleted};
use crate::access::PlatformScope;
use crate::kernel::{Bounded, Context, EntityId, ListQuery, Page, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::registry::{Entity, EntityFilter, EntityQuery};

/// The entities of a platform, newest first.
///
/// # Errors
/// `INVALID_CURSOR`.
pub async fn list(
    cx: &Context,
    scope: &PlatformScope<grant::EntityRead>,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<EntityFilter>,
) -> Result<Page<Stored<Entity>>> {
    let listed = EntityQuery::Listed(EntityFilter {
        include_deleted: query.filter.include_deleted && cx.caller.is_operator(),
        ..query.filter
    });
    scope
        .records::<Entity>(uow)
        .page(&listed, &query.page())
        .await
}

/// An entity that is not deleted.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn get(
    scope: &PlatformScope<grant::EntityRead>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
) -> Result<Stored<Entity>> {
    not_deleted(scope, uow, entity).await
}

/// The entities above one, the root first, without itself.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn ancestors(
    scope: &PlatformScope<grant::EntityRead>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
) -> Result<Vec<Stored<Entity>>> {
    not_deleted(scope, uow, entity).await?;
    ancestors_of(scope, uow, entity).await
}

/// The entities below one that are not deleted, breadth first, without itself; the first ones, if there are very many.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn descendants(
    scope: &PlatformScope<grant::EntityRead>,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
) -> Result<Bounded<Stored<Entity>>> {
    not_deleted(scope, uow, entity).await?;
    first_descendants_of(scope, uow, entity).await
}
