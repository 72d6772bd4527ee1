//! The endpoint that has custom domains served.

use core_domain::access::PlatformScope;
use core_domain::kernel::{Code, PlatformId, Result, permission};
use core_domain::port::UnitOfWork;
use core_domain::registry::AddCustomDomain;
use core_domain::use_case::registry::custom_domain;

use super::queued::{QueuedResponse, SUCCESS, queued_response};
use crate::kernel::{Cx, DryRunQuery, Endpoint, Input, OnPlatform, post};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        post("/api/v1/provision/domain/add", "addDomain")
            .summary("Adds a custom domain and has it served.")
            .description(
                "Creates the domain if the platform does not have it, and queues a job. The job \
                 waits up to seven days for the DNS records that prove the ownership, then has \
                 the provider serve the hostname, and waits for its certificate. If the domain \
                 exists, the new job replaces the earlier one, and a failed domain is verified \
                 again. With `dryRun=true` nothing is queued, and the response has the plan of \
                 the job.",
            )
            .success(SUCCESS)
            .refuses(&[
                Code::NotFound,
                Code::InvalidState,
                Code::Conflict,
                Code::HostnameReserved,
                Code::LimitReached,
                Code::QuotaExceeded,
            ])
            .writes(add),
    ]
}

type AddDomainInput = Input<(), DryRunQuery, AddCustomDomain>;

impl OnPlatform for AddDomainInput {
    fn platform_id(&self) -> &PlatformId {
        &self.body.platform_id
    }
}

async fn add(
    cx: &Cx,
    scope: PlatformScope<permission::DomainWrite>,
    uow: &mut dyn UnitOfWork,
    input: AddDomainInput,
) -> Result<QueuedResponse> {
    let job = custom_domain::add(cx, &scope, uow, input.body).await?;
    queued_response(uow, input.query, &job).await
}
