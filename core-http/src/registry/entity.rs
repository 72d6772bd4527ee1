//! Entities.

use core_domain::access::PlatformScope;
use core_domain::kernel::{
    Bounded, Code, EntityId, ListQuery, Page, PlatformId, Result, Stored, grant,
};
use core_domain::port::UnitOfWork;
use core_domain::registry::{CreateEntity, DeleteEntity, Entity, EntityFilter, UpdateEntity};
use core_domain::use_case::registry::{entity, removal_plan};
use http::StatusCode;

use super::deletion::Deletion;
use crate::kernel::{Cx, Endpoint, Input, Output, Success, delete, get, patch, post};

const ALL: &str = "/api/v1/platforms/{platformId}/entities";
const ONE: &str = "/api/v1/platforms/{platformId}/entities/{entityId}";
const ANCESTORS: &str = "/api/v1/platforms/{platformId}/entities/{entityId}/ancestors";
const DESCENDANTS: &str = "/api/v1/platforms/{platformId}/entities/{entityId}/descendants";

type Reads = PlatformScope<grant::EntityRead>;
type Writes = PlatformScope<grant::EntityWrite>;
type OfPlatform = (PlatformId,);
type One = (PlatformId, EntityId);

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get(ALL, "listEntities")
            .summary("Lists a platform's entities, newest first.")
            .reads(list),
        post(ALL, "createEntity")
            .summary("Creates an entity.")
            .success(&[StatusCode::CREATED])
            .refuses(&[
                Code::SlugTaken,
                Code::Conflict,
                Code::InvalidState,
                Code::LimitReached,
            ])
            .writes(create),
        get(ONE, "getEntity")
            .summary("Shows an entity.")
            .reads(show),
        patch(ONE, "updateEntity")
            .summary("Changes an entity.")
            .if_match()
            .refuses(&[Code::InvalidState, Code::Conflict])
            .writes(update),
        delete(ONE, "deleteEntity")
            .summary(
                "Deletes an entity that nothing lives below; operators may delete the whole tree.",
            )
            .if_match()
            .refuses(&[Code::InvalidState, Code::Conflict, Code::LimitReached])
            .writes(remove),
        get(ANCESTORS, "listAncestors")
            .summary("Lists the entities above one, the root first.")
            .reads(ancestors),
        get(DESCENDANTS, "listDescendants")
            .summary("Lists the entities below one, breadth first.")
            .reads(descendants),
    ]
}

async fn list(
    cx: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<OfPlatform, ListQuery<EntityFilter>>,
) -> Result<Page<Stored<Entity>>> {
    entity::list(cx, &scope, uow, &input.query).await
}

async fn create(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<OfPlatform, (), CreateEntity>,
) -> Result<Stored<Entity>> {
    entity::create(cx, &scope, uow, input.body).await
}

async fn show(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<One>,
) -> Result<Stored<Entity>> {
    entity::get(&scope, uow, &input.path.1).await
}

async fn update(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<One, (), UpdateEntity>,
) -> Result<Stored<Entity>> {
    entity::update(cx, &scope, uow, &input.path.1, input.body).await
}

async fn remove(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<One, DeleteEntity>,
) -> Result<Output<Deletion<Success>>> {
    let ((_, id), how) = (input.path, input.query);
    if how.dry_run {
        let plan = removal_plan::of_entity(cx, &scope, uow, &id, how.cascade).await?;
        return Ok(Output::new(Deletion::planned(plan)));
    }
    entity::delete(cx, &scope, uow, &id, how.cascade).await?;
    Ok(Output::new(Deletion::done()))
}

async fn ancestors(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<One>,
) -> Result<Vec<Stored<Entity>>> {
    entity::ancestors(&scope, uow, &input.path.1).await
}

async fn descendants(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<One>,
) -> Result<Bounded<Stored<Entity>>> {
    entity::descendants(&scope, uow, &input.path.1).await
}
