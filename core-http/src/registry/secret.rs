//! Endpoints for the status of the secrets of resources.

use core_domain::access::PlatformScope;
use core_domain::kernel::{Code, PlatformId, ResourceId, Result, permission};
use core_domain::port::UnitOfWork;
use core_domain::registry::{ResourceSecret, SecretName, SetResourceSecret};
use core_domain::use_case::registry::secret;
use http::StatusCode;

use crate::kernel::{
    Cx, Endpoint, Input, Output, Unparsed, Versioned, call_with_id_and_query, get, post,
};

const ALL: &str = "/api/v1/platforms/{platformId}/resources/{resourceId}/secrets";
const ONE: &str = "/api/v1/platforms/{platformId}/resources/{resourceId}/secrets/{secretName}";

type One = (PlatformId, ResourceId, Unparsed<SecretName>);

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get(ALL, "listResourceSecrets")
            .summary("Lists the secrets of a resource, newest first.")
            .description(
                "The list has names and statuses, never values. The registry does not store the \
                 values.",
            )
            .reads(call_with_id_and_query(secret::list)),
        post(ONE, "setResourceSecret")
            .summary("Records the status of a secret of a resource.")
            .description(
                "Only the name and the status are stored; the value is sent to the provider by \
                 other means. Creates the record if the resource has no secret with this name \
                 (201), otherwise updates it (200).",
            )
            .success(&[StatusCode::CREATED, StatusCode::OK])
            .if_match()
            .refuses(&[Code::LimitReached])
            .writes(set),
    ]
}

async fn set(
    cx: &Cx,
    scope: PlatformScope<permission::SecretWrite>,
    uow: &mut dyn UnitOfWork,
    input: Input<One, (), SetResourceSecret>,
) -> Result<Versioned<ResourceSecret>> {
    let (_, resource, name) = input.path;
    let name = name.parse("secretName")?;
    let (stored, new) = secret::set(cx, &scope, uow, &resource, name, input.body).await?;
    let status = if new {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let etag = stored.etag();
    Ok(Output::new(stored.into_inner()).status(status).etag(etag))
}
