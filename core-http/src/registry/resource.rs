//! The catalogue of infrastructure resources.

use core_domain::access::{OrganizationScope, PlatformScope};
use core_domain::kernel::{
    Code, DeletedFilter, EntityId, ListQuery, Page, PlatformId, ResourceId, Result, Stored, grant,
};
use core_domain::port::UnitOfWork;
use core_domain::registry::{CreateResource, ProviderName, Resource, UpdateResource};
use core_domain::use_case::registry::{removal_plan, resource};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::deletion::Deletion;
use crate::kernel::{Cx, DryRunQuery, Endpoint, Input, Output, Success, delete, get, patch, post};

const ALL: &str = "/api/v1/platforms/{platformId}/resources";
const ALL_ALIAS: &str = "/api/v1/resources/platforms/{platformId}/resources";
const OF_ENTITY: &str = "/api/v1/platforms/{platformId}/entities/{entityId}/resources";
const OF_ENTITY_ALIAS: &str =
    "/api/v1/resources/platforms/{platformId}/entities/{entityId}/resources";
const ONE: &str = "/api/v1/platforms/{platformId}/resources/{resourceId}";
const ONE_ALIAS: &str = "/api/v1/resources/platforms/{platformId}/resources/{resourceId}";

type Reads = PlatformScope<grant::ResourceRead>;
type Writes = PlatformScope<grant::ResourceWrite>;
type One = (PlatformId, ResourceId);
type OfEntity = (PlatformId, EntityId);

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/api/v1/lookup", "lookUpResource")
            .alias("/api/v1/resources/lookup")
            .summary("Finds the resource with a name at the provider.")
            .refuses(&[Code::NotFound])
            .reads(look_up),
        get(ALL, "listResources")
            .alias(ALL_ALIAS)
            .summary("Lists a platform's resources, newest first.")
            .reads(list),
        get(OF_ENTITY, "listEntityResources")
            .alias(OF_ENTITY_ALIAS)
            .summary("Lists an entity's resources, newest first.")
            .reads(list_of_entity),
        post(OF_ENTITY, "createResource")
            .alias(OF_ENTITY_ALIAS)
            .summary("Enters a resource into the catalogue. Names that jobs derive for another platform are reserved.")
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::Conflict, Code::InvalidState, Code::LimitReached])
            .writes(create),
        get(ONE, "getResource")
            .alias(ONE_ALIAS)
            .summary("Shows a resource.")
            .reads(show),
        patch(ONE, "updateResource")
            .alias(ONE_ALIAS)
            .summary("Changes a resource's entry.")
            .if_match()
            .refuses(&[Code::InvalidState, Code::Conflict])
            .writes(update),
        delete(ONE, "deleteResource")
            .alias(ONE_ALIAS)
            .summary("Deletes a resource's entry; at the provider nothing is removed.")
            .if_match()
            .refuses(&[Code::InvalidState, Code::Conflict])
            .writes(remove),
    ]
}

/// Query of `GET /api/v1/lookup`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LookUpQuery {
    /// The name at the provider.
    cf_name: ProviderName,
}

async fn look_up(
    cx: &Cx,
    scope: OrganizationScope<grant::ResourceRead>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), LookUpQuery>,
) -> Result<Stored<Resource>> {
    resource::look_up(cx, &scope, uow, input.query.cf_name.as_str()).await
}

async fn list(
    cx: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId,), ListQuery<DeletedFilter>>,
) -> Result<Page<Stored<Resource>>> {
    resource::list(cx, &scope, uow, &input.query).await
}

async fn list_of_entity(
    cx: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<OfEntity, ListQuery<DeletedFilter>>,
) -> Result<Page<Stored<Resource>>> {
    resource::list_of_entity(cx, &scope, uow, &input.path.1, &input.query).await
}

async fn create(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<OfEntity, (), CreateResource>,
) -> Result<Stored<Resource>> {
    resource::create(cx, &scope, uow, &input.path.1, input.body).await
}

async fn show(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<One>,
) -> Result<Stored<Resource>> {
    resource::get(&scope, uow, &input.path.1).await
}

async fn update(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<One, (), UpdateResource>,
) -> Result<Stored<Resource>> {
    resource::update(cx, &scope, uow, &input.path.1, input.body).await
}

async fn remove(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<One, DryRunQuery>,
) -> Result<Output<Deletion<Success>>> {
    let (_, id) = input.path;
    if input.query.dry_run {
        let plan = removal_plan::of_resource(cx, &scope, uow, &id).await?;
        return Ok(Output::new(Deletion::planned(plan)));
    }
    resource::delete(cx, &scope, uow, &id).await?;
    Ok(Output::new(Deletion::done()))
}
