//! Reading the audit. A read is recorded itself, so these rows write.

use core_domain::access::{PlatformScope, SignedInScope};
use core_domain::kernel::{Code, ListQuery, Page, PlatformId, Result, Stored, grant};
use core_domain::port::UnitOfWork;
use core_domain::shared::{AuditEntry, AuditFilter, PlatformAuditFilter};
use core_domain::use_case::registry::audit;

use crate::kernel::{Cx, Endpoint, Input, get};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/api/v1/platforms/{platformId}/audit", "listPlatformAudit")
            .summary("Lists a platform's audit, newest first.")
            .writes(list_of_platform),
        get("/api/v1/audit", "listAudit")
            .summary("Lists the audit across platforms, newest first.")
            .refuses(&[Code::Forbidden, Code::NotFound])
            .writes(list),
    ]
}

async fn list_of_platform(
    cx: &Cx,
    scope: PlatformScope<grant::AuditRead>,
    uow: &mut dyn UnitOfWork,
    input: Input<(PlatformId,), ListQuery<PlatformAuditFilter>>,
) -> Result<Page<Stored<AuditEntry>>> {
    audit::list_of_platform(cx, &scope, uow, &input.query).await
}

async fn list(
    cx: &Cx,
    scope: SignedInScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), ListQuery<AuditFilter>>,
) -> Result<Page<Stored<AuditEntry>>> {
    audit::list(cx, &scope, uow, &input.query).await
}
