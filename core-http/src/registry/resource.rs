//! Endpoints for the catalogue of infrastructure resources.

use core_domain::access::{OrganizationScope, PlatformScope};
use core_domain::kernel::{Code, PlatformId, ResourceId, Result, Stored, permission};
use core_domain::port::UnitOfWork;
use core_domain::registry::{ProviderName, Resource};
use core_domain::use_case::registry::{removal_plan, resource};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::deletion::Deletion;
use crate::kernel::{
    Cx, DryRunQuery, Endpoint, Input, Output, Success, call_with_id, call_with_id_and_body,
    call_with_id_and_query, call_with_query, delete, get, patch, post,
};

const ALL: &str = "/api/v1/platforms/{platformId}/resources";
const ALL_ALIAS: &str = "/api/v1/resources/platforms/{platformId}/resources";
const OF_ENTITY: &str = "/api/v1/platforms/{platformId}/entities/{entityId}/resources";
const OF_ENTITY_ALIAS: &str =
    "/api/v1/resources/platforms/{platformId}/entities/{entityId}/resources";
const ONE: &str = "/api/v1/platforms/{platformId}/resources/{resourceId}";
const ONE_ALIAS: &str = "/api/v1/resources/platforms/{platformId}/resources/{resourceId}";

type Writes = PlatformScope<permission::ResourceWrite>;
type One = (PlatformId, ResourceId);

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/api/v1/lookup", "lookUpResource")
            .alias("/api/v1/resources/lookup")
            .summary("Finds a resource by its name at the provider.")
            .description(
                "Searches the platforms that the caller can access, and returns the newest match \
                 that is not deleted. Suspended platforms are skipped, except for operators.",
            )
            .refuses(&[Code::NotFound])
            .reads(look_up),
        get(ALL, "listResources")
            .alias(ALL_ALIAS)
            .summary("Lists the resources of a platform, newest first.")
            .description(
                "Deleted resources are left out; operators can include them with \
                 `includeDeleted=true`.",
            )
            .reads(call_with_query(resource::list)),
        get(OF_ENTITY, "listEntityResources")
            .alias(OF_ENTITY_ALIAS)
            .summary("Lists the resources of an entity, newest first.")
            .description(
                "Deleted resources are left out; operators can include them with \
                 `includeDeleted=true`.",
            )
            .reads(call_with_id_and_query(resource::list_of_entity)),
        post(OF_ENTITY, "createResource")
            .alias(OF_ENTITY_ALIAS)
            .summary("Adds a resource to the catalogue.")
            .description(
                "Only the record is created; nothing is created at the provider. Names that jobs \
                 derive for another platform or feature are reserved. A database, bucket, \
                 key-value namespace or queue whose `serviceName` is the id of a feature in use \
                 belongs to that feature, and is removed with its data.",
            )
            .success(&[StatusCode::CREATED])
            .refuses(&[Code::Conflict, Code::InvalidState, Code::LimitReached])
            .writes(call_with_id_and_body(resource::create)),
        get(ONE, "getResource")
            .alias(ONE_ALIAS)
            .summary("Returns a resource.")
            .description("Deleted resources are not found.")
            .reads(call_with_id(resource::get)),
        patch(ONE, "updateResource")
            .alias(ONE_ALIAS)
            .summary("Updates the record of a resource.")
            .description(
                "Nothing changes at the provider. Fields that are not in the body stay unchanged, \
                 and `null` removes an optional value. The status `deleted` deletes the record, \
                 as `DELETE` does.",
            )
            .if_match()
            .refuses(&[Code::InvalidState, Code::Conflict])
            .writes(call_with_id_and_body(resource::update)),
        delete(ONE, "deleteResource")
            .alias(ONE_ALIAS)
            .summary("Deletes the record of a resource.")
            .description(
                "Nothing is removed at the provider. A resource that a DNS record or a feature \
                 uses is not deleted. With `dryRun=true` nothing is deleted, and the response has \
                 the number of records that would be deleted. A repeated call gets 404.",
            )
            .if_match()
            .refuses(&[Code::InvalidState, Code::Conflict])
            .writes(remove),
    ]
}

/// The query of `GET /api/v1/lookup`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LookUpQuery {
    /// The name of the resource at the provider.
    cf_name: ProviderName,
}

async fn look_up(
    cx: &Cx,
    scope: OrganizationScope<permission::ResourceRead>,
    uow: &mut dyn UnitOfWork,
    input: Input<(), LookUpQuery>,
) -> Result<Stored<Resource>> {
    resource::look_up(cx, &scope, uow, input.query.cf_name.as_str()).await
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
        return Ok(Output::new(Deletion::from_plan(plan)));
    }
    resource::delete(cx, &scope, uow, &id).await?;
    Ok(Output::new(Deletion::success()))
}
