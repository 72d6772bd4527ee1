//! Having custom domains served.

use core_domain::access::PlatformScope;
use core_domain::kernel::{Code, PlatformId, Result, grant};
use core_domain::port::UnitOfWork;
use core_domain::registry::AddCustomDomain;
use core_domain::use_case::registry::domain;

use super::queued::{Queued, SUCCESS, queued};
use crate::kernel::{Cx, DryRunQuery, Endpoint, Input, OnPlatform, post};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        post("/api/v1/provision/domain/add", "addDomain")
            .summary("Queues the job that proves whose a custom domain is, has it served and waits for its certificate. With dryRun only tells what it would do.")
            .success(SUCCESS)
            .refuses(&[Code::NotFound, Code::InvalidState, Code::Conflict, Code::HostnameReserved, Code::LimitReached])
            .writes(add),
    ]
}

type Wanted = Input<(), DryRunQuery, AddCustomDomain>;

impl OnPlatform for Wanted {
    fn platform_id(&self) -> &PlatformId {
        &self.body.platform_id
    }
}

async fn add(
    cx: &Cx,
    scope: PlatformScope<grant::DomainWrite>,
    uow: &mut dyn UnitOfWork,
    input: Wanted,
) -> Result<Queued> {
    let job = domain::add(cx, &scope, uow, input.body).await?;
    queued(uow, input.query, &job).await
}
