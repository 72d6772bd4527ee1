//! Endpoints for custom domains.

use core_domain::access::{OperatorScope, PlatformScope};
use core_domain::kernel::{Code, CustomDomainId, PlatformId, Result, Stored, permission};
use core_domain::port::UnitOfWork;
use core_domain::registry::{CustomDomain, Hostname, ProviderName};
use core_domain::use_case::registry::custom_domain;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{
    Cx, Data, Endpoint, Input, ListP4, Output, call_with_body, call_with_id, call_with_id_and_body,
    call_with_query, delete, get, patch, post,
};

const PENDING: &str = "/api/v1/domains/pending";
const ALL: &str = "/api/v1/platforms/{platformId}/domains";
const ONE: &str = "/api/v1/platforms/{platformId}/domains/{domainId}";

type Writes = PlatformScope<permission::DomainWrite>;
type One = (PlatformId, CustomDomainId);

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get(PENDING, "listPendingDomains")
            .summary("Lists the unverified custom domains of all platforms, oldest first.")
            .description(
                "Returns the domains whose DNS records have not been verified yet and have not \
                 failed; at most 1,000, without pagination.",
            )
            .reads(list_pending),
        get(ALL, "listDomains")
            .summary("Lists the custom domains of a platform, newest first.")
            .description(
                "Deleted domains are left out; operators can include them with \
                 `includeDeleted=true`.",
            )
            .reads(
                call_with_query(custom_domain::list)
                    .map(|page| Output::new(ListP4::from(page.map(Stored::into_inner)))),
            ),
        post(ALL, "createDomain")
            .summary("Adds a custom domain to a platform.")
            .description(
                "Creates the domain with the status `pending` and queues a job. The job waits up \
                 to seven days for the DNS records of the domain, then has the provider serve the \
                 hostname, and waits for its certificate. Several platforms may add the same \
                 hostname; the platform that proved its ownership last is served. Read the domain \
                 to see the DNS records that are missing.",
            )
            .success(&[StatusCode::CREATED])
            .refuses(&[
                Code::Conflict,
                Code::HostnameReserved,
                Code::NotFound,
                Code::LimitReached,
                Code::QuotaExceeded,
            ])
            .writes(call_with_body(custom_domain::create)),
        get(ONE, "getDomain")
            .summary("Returns a custom domain, with its missing DNS records.")
            .description(
                "`missingRecords` has the DNS records that the last look-up did not find. It is \
                 empty once the domain has been active. Deleted domains are not found.",
            )
            .reads(call_with_id(custom_domain::get)),
        patch(ONE, "updateDomain")
            .summary("Updates a custom domain.")
            .description(
                "Fields that are not in the body stay unchanged. Setting the status `pending` \
                 verifies a failed domain again, with a new job. With `active`, a new job has the \
                 provider serve the domain; with `failed` or `deleted`, a job stops the serving. \
                 Only operators may set `active`, `verifiedAt`, and a certificate status that \
                 follows a proof.",
            )
            .if_match()
            .refuses(&[Code::InvalidState, Code::Conflict, Code::LimitReached])
            .writes(call_with_id_and_body(custom_domain::update)),
        delete(ONE, "deleteDomain")
            .summary("Deletes a custom domain.")
            .description(
                "Marks the domain as deleted; its hostname can be added again. If the provider \
                 may serve the hostname, a job stops that. A repeated call gets 404.",
            )
            .success(&[StatusCode::NO_CONTENT])
            .if_match()
            .refuses(&[Code::LimitReached])
            .writes(remove),
    ]
}

/// A domain whose DNS records have not been verified yet.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct PendingDomain {
    /// The id of the domain.
    id: CustomDomainId,
    /// The id of the platform that the domain belongs to.
    platform_id: PlatformId,
    /// The id of the hostname at the provider; `null` if the provider does not serve it.
    cf_hostname_id: Option<ProviderName>,
    /// The hostname of the domain.
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
    let domains = custom_domain::list_unverified(scope, uow).await?;
    let data = domains.into_iter().map(PendingDomain::from).collect();
    Ok(Output::new(Data { data }))
}

async fn remove(cx: &Cx, scope: Writes, uow: &mut dyn UnitOfWork, input: Input<One>) -> Result<()> {
    custom_domain::delete(cx, &scope, uow, &input.path.1).await
}
