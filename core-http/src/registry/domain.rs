//! Custom domains.

use core_domain::access::{OperatorScope, PlatformScope};
use core_domain::kernel::{
    Code, CustomDomainId, DeletedFilter, ListQuery, PlatformId, Result, Stored, grant,
};
use core_domain::port::UnitOfWork;
use core_domain::registry::{
    CreateCustomDomain, CustomDomain, Hostname, ProviderName, UpdateCustomDomain,
};
use core_domain::use_case::registry::domain;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Cx, Data, Endpoint, Input, ListP4, Output, delete, get, patch, post};

const PENDING: &str = "/api/v1/domains/pending";
const ALL: &str = "/api/v1/platforms/{platformId}/domains";
const ONE: &str = "/api/v1/platforms/{platformId}/domains/{domainId}";

type Reads = PlatformScope<grant::DomainRead>;
type Writes = PlatformScope<grant::DomainWrite>;
type OfPlatform = (PlatformId,);
type One = (PlatformId, CustomDomainId);

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get(PENDING, "listPendingDomains")
            .summary(
                "Lists the domains of all platforms that wait for their DNS records, oldest first.",
            )
            .reads(list_pending),
        get(ALL, "listDomains")
            .summary("Lists a platform's custom domains, newest first.")
            .reads(list),
        post(ALL, "createDomain")
            .summary("Enters a custom domain, which is verified from then on.")
            .success(&[StatusCode::CREATED])
            .refuses(&[
                Code::Conflict,
                Code::HostnameReserved,
                Code::NotFound,
                Code::LimitReached,
            ])
            .writes(create),
        get(ONE, "getDomain")
            .summary("Shows a custom domain, with the DNS records it lacks.")
            .reads(show),
        patch(ONE, "updateDomain")
            .summary("Changes a custom domain.")
            .if_match()
            .refuses(&[Code::InvalidState, Code::Conflict, Code::LimitReached])
            .writes(update),
        delete(ONE, "deleteDomain")
            .summary("Deletes a custom domain.")
            .success(&[StatusCode::NO_CONTENT])
            .if_match()
            .refuses(&[Code::LimitReached])
            .writes(remove),
    ]
}

/// A domain that waits for its DNS records.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PendingDomain {
    /// The domain's id.
    id: CustomDomainId,
    /// The platform it belongs to.
    platform_id: PlatformId,
    /// Its id at the provider.
    cf_hostname_id: Option<ProviderName>,
    /// The name.
    hostname: Hostname,
}

impl From<Stored<CustomDomain>> for PendingDomain {
    fn from(domain: Stored<CustomDomain>) -> Self {
        let domain = domain.into_inner();
        Self {
            id: domain.id,
            platform_id: domain.platform_id,
            cf_hostname_id: domain.cf_hostname_id,
            hostname: domain.hostname,
        }
    }
}

async fn list_pending(
    _: &Cx,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    _: Input,
) -> Result<Output<Data<PendingDomain>>> {
    let domains = domain::list_unverified(scope, uow).await?;
    let data = domains.into_iter().map(PendingDomain::from).collect();
    Ok(Output::new(Data { data }))
}

async fn list(
    cx: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<OfPlatform, ListQuery<DeletedFilter>>,
) -> Result<Output<ListP4<CustomDomain>>> {
    let page = domain::list(cx, &scope, uow, &input.query).await?;
    Ok(Output::new(page.map(Stored::into_inner).into()))
}

async fn create(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<OfPlatform, (), CreateCustomDomain>,
) -> Result<Stored<CustomDomain>> {
    domain::create(cx, &scope, uow, input.body).await
}

async fn show(
    _: &Cx,
    scope: Reads,
    uow: &mut dyn UnitOfWork,
    input: Input<One>,
) -> Result<Stored<CustomDomain>> {
    domain::get(&scope, uow, &input.path.1).await
}

async fn update(
    cx: &Cx,
    scope: Writes,
    uow: &mut dyn UnitOfWork,
    input: Input<One, (), UpdateCustomDomain>,
) -> Result<Stored<CustomDomain>> {
    domain::update(cx, &scope, uow, &input.path.1, input.body).await
}

async fn remove(cx: &Cx, scope: Writes, uow: &mut dyn UnitOfWork, input: Input<One>) -> Result<()> {
    domain::delete(cx, &scope, uow, &input.path.1).await
}
