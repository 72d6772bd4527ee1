//! Endpoints for entities: the tenants and sub-tenants of platforms.

use core_domain::access::PlatformScope;
use core_domain::kernel::{Code, EntityId, PlatformId, Result, permission};
use core_domain::port::UnitOfWork;
use core_domain::registry::DeleteEntity;
use core_domain::use_case::registry::{entity, removal_plan};
use http::StatusCode;

use super::deletion::Deletion;
use crate::kernel::{
    Cx, Endpoint, Input, Output, Success, call_with_body, call_with_id, call_with_id_and_body,
    call_with_query, delete, get, patch, post,
};

const ALL: &str = "/api/v1/platforms/{platformId}/entities";
const ONE: &str = "/api/v1/platforms/{platformId}/entities/{entityId}";
const ANCESTORS: &str = "/api/v1/platforms/{platformId}/entities/{entityId}/ancestors";
const DESCENDANTS: &str = "/api/v1/platforms/{platformId}/entities/{entityId}/descendants";

type Writes = PlatformScope<permission::EntityWrite>;
type One = (PlatformId, EntityId);

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get(ALL, "listEntities")
            .summary("Lists the entities of a platform, newest first.")
            .description(
                "The query parameter `type` selects tenants or sub-tenants. Deleted entities are \
                 left out; operators can include them with `includeDeleted=true`.",
            )
            .reads(call_with_query(entity::list)),
        post(ALL, "createEntity")
            .summary("Creates an entity.")
            .description(
                "A tenant has no parent; a sub-tenant has an existing entity of the platform as \
                 its parent. The slug is unique among the children of the parent. The parent and \
                 the entities above it must not be suspended.",
            )
            .success(&[StatusCode::CREATED])
            .refuses(&[
                Code::SlugTaken,
                Code::Conflict,
                Code::InvalidState,
                Code::LimitReached,
                Code::QuotaExceeded,
            ])
            .writes(call_with_body(entity::create)),
        get(ONE, "getEntity")
            .summary("Returns an entity.")
            .description("Deleted entities are not found.")
            .reads(call_with_id(entity::get)),
        patch(ONE, "updateEntity")
            .summary("Updates the name or the status of an entity.")
            .description(
                "Fields that are not in the body stay unchanged. The status `deleted` deletes the \
                 entity, as `DELETE` does, and needs an entity without entities, resources, \
                 workspace stacks or features in use.",
            )
            .if_match()
            .refuses(&[Code::InvalidState, Code::Conflict])
            .writes(call_with_id_and_body(entity::update)),
        delete(ONE, "deleteEntity")
            .summary("Deletes an entity.")
            .description(
                "An entity with child entities, resources, workspace stacks or features in use is \
                 not deleted. With `cascade=true`, operators delete the whole tree: the entities \
                 below, the records of their resources, and their workspace stacks. Features end, \
                 and a job removes the objects of the resources at the provider. With \
                 `dryRun=true` nothing is deleted, and the response has the number of records \
                 that would be deleted.",
            )
            .if_match()
            .refuses(&[Code::InvalidState, Code::Conflict, Code::LimitReached])
            .writes(remove),
        get(ANCESTORS, "listAncestors")
            .summary("Lists the entities above an entity, the root first.")
            .description("The entity itself is not in the list.")
            .reads(call_with_id(entity::ancestors)),
        get(DESCENDANTS, "listDescendants")
            .summary("Lists the entities below an entity, breadth first.")
            .description(
                "The entity itself and deleted entities are not in the list. A very long list is \
                 cut off; `hasMore` is then `true`.",
            )
            .reads(call_with_id(entity::descendants)),
    ]
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
        return Ok(Output::new(Deletion::from_plan(plan)));
    }
    entity::delete(cx, &scope, uow, &id, how.cascade).await?;
    Ok(Output::new(Deletion::success()))
}
