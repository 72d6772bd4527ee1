//! Reading the audit. A read is recorded itself, in a unit of its own.

use core_domain::access::{PlatformScope, SignedInScope};
use core_domain::kernel::{Code, ListQuery, Page, PlatformId, Result, Stored, grant};
use core_domain::port::UnitOfWork;
use core_domain::shared::{
    AuditCheckpoint, AuditCheckpointFilter, AuditEntry, AuditFilter, PlatformAuditFilter,
};
use core_domain::use_case::registry::audit::{self, VerifyQuery, VerifyReport};
use schemars::JsonSchema;
use serde::Serialize;

use super::audit_export;
use crate::kernel::{Cx, Endpoint, Input, JsonWebKey, ListP1, Output, PaginationP1, get};

/// What whoever is no operator is refused with, who names a platform or acts for one.
const REFUSALS: &[Code] = &[Code::Forbidden, Code::NotFound];

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/api/v1/platforms/{platformId}/audit", "listPlatformAudit")
            .summary("Lists a platform's audit, newest first.")
            .scoped(list_of_platform),
        get("/api/v1/audit", "listAudit")
            .summary("Lists the audit across platforms, newest first.")
            .refuses(REFUSALS)
            .scoped(list),
        get("/api/v1/audit/export", "exportAudit")
            .summary("Exports the audit as lines of JSON or as CSV, oldest first.")
            .refuses(REFUSALS)
            .produces(&audit_export::CONTENT_TYPES)
            .scoped(audit_export::export),
        get("/api/v1/audit/verify", "verifyAudit")
            .summary("Verifies the chain of a platform's audit, or for operators that of the installation and all it has sealed.")
            .refuses(REFUSALS)
            .scoped(verify),
        get("/api/v1/audit/checkpoints", "listAuditCheckpoints")
            .summary("Lists signed checkpoints of the audit's chains and of the installation, newest first, and the key that signs.")
            .refuses(REFUSALS)
            .reads(list_checkpoints),
    ]
}

async fn list_of_platform(
    cx: &Cx,
    scope: PlatformScope<grant::AuditRead>,
    input: Input<(PlatformId,), ListQuery<PlatformAuditFilter>>,
) -> Result<Page<Stored<AuditEntry>>> {
    audit::list_of_platform(cx, &scope, cx.app.store.as_ref(), &input.query).await
}

async fn list(
    cx: &Cx,
    scope: SignedInScope,
    input: Input<(), ListQuery<AuditFilter>>,
) -> Result<Page<Stored<AuditEntry>>> {
    audit::list(cx, &scope, cx.app.store.as_ref(), &input.query).await
}

async fn verify(
    cx: &Cx,
    scope: SignedInScope,
    input: Input<(), VerifyQuery>,
) -> Result<Output<VerifyReport>> {
    let (store, key) = (cx.app.store.as_ref(), cx.app.audit_key.public());
    let report = audit::verify(cx, &scope, store, &key, &input.query).await?;
    Ok(Output::new(report))
}

/// P1, and the key whose signatures the checkpoints have.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct CheckpointList {
    /// The checkpoints.
    data: Vec<AuditCheckpoint>,
    /// Where they stand in the list.
    pagination: PaginationP1,
    /// The public key.
    keys: [JsonWebKey; 1],
}

async fn list_checkpoints(
    cx: &Cx,
    scope: SignedInScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(), ListQuery<AuditCheckpointFilter>>,
) -> Result<Output<CheckpointList>> {
    let page = audit::list_checkpoints(cx, &scope, uow, &input.query).await?;
    let ListP1 { data, pagination } = page.map(Stored::into_inner).into();
    let key = cx.app.audit_key.public();
    Ok(Output::new(CheckpointList {
        data,
        pagination,
        keys: [JsonWebKey::new(&key.thumbprint(), &key.x())],
    }))
}
