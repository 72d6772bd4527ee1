//! Endpoints that read the audit log. Each read is recorded itself, in a separate unit of work.

use std::io::{BufRead, BufReader};

use core_domain::access::{PlatformScope, SignedInScope};
use core_domain::kernel::{Code, Error, ListQuery, Page, PlatformId, Result, Stored, permission};
use core_domain::port::{BlobError, Blobs, Cause, UnitOfWork};
use core_domain::shared::{
    AuditCheckpoint, AuditCheckpointFilter, AuditEntry, AuditFilter, ContentDigest,
    PlatformAuditFilter,
};
use core_domain::use_case::registry::audit::{self, VerifyQuery, VerifyReport};
use schemars::JsonSchema;
use serde::Serialize;

use super::audit_export;
use crate::kernel::{Cx, Endpoint, Input, JsonWebKey, ListP1, Output, PaginationP1, get};

/// The codes for a caller other than an operator: without the permission, and for a platform that the caller cannot
/// access.
const REFUSALS: &[Code] = &[Code::Forbidden, Code::NotFound];

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/api/v1/platforms/{platformId}/audit", "listPlatformAudit")
            .summary("Lists the audit entries of a platform, newest first.")
            .description(
                "The query can filter by action and by the affected kind of record. The read \
                 itself is recorded in the audit log, in a separate stream, so that it does not \
                 change the list.",
            )
            .plain_with_scope(list_of_platform),
        get("/api/v1/audit", "listAudit")
            .summary("Lists audit entries across platforms, newest first.")
            .description(
                "Operators see the entries of all platforms and of the installation, or those of \
                 the platform in `platformId`. Other callers see the entries of one platform: \
                 that in `platformId`, or the platform that they act for. Entries of a platform \
                 are kept after the platform was removed. The read itself is recorded in the \
                 audit log.",
            )
            .refuses(REFUSALS)
            .plain_with_scope(list),
        get("/api/v1/audit/export", "exportAudit")
            .summary("Exports audit entries as JSON lines or CSV, oldest first.")
            .description(
                "The filters are those of `GET /api/v1/audit`. The export contains the entries \
                 that were committed before the request, and is streamed as an attachment. An \
                 export of a past period has the same content whenever it is made. In CSV, an \
                 apostrophe precedes each field that a spreadsheet would treat as a formula. The \
                 export is recorded in the audit log.",
            )
            .refuses(REFUSALS)
            .produces(&audit_export::CONTENT_TYPES)
            .plain_with_scope(audit_export::export),
        get("/api/v1/audit/verify", "verifyAudit")
            .summary("Verifies the hash chain of an audit log.")
            .description(
                "Computes all hashes again and compares each link with its entry, its neighbours \
                 and the signed checkpoints. Checks the chain of the platform in `platformId` or \
                 of the platform that the caller acts for; for operators without `platformId`, \
                 the chain of the installation. One call checks at most 100,000 links; continue \
                 with `after` set to the `to` of the report. If an operator verifies the chain of \
                 the installation up to its end, the checkpoints of the installation as a whole \
                 are checked too, with the signatures of all archives and the content of the newest \
                 one. Archived links are skipped. Nothing is changed; the read is recorded in the \
                 audit log.",
            )
            .refuses(REFUSALS)
            .plain_with_scope(verify),
        get("/api/v1/audit/checkpoints", "listAuditCheckpoints")
            .summary("Lists signed audit checkpoints, newest first, with the public key.")
            .description(
                "A checkpoint is a signed statement about the end of a chain at a certain time. \
                 Copies that are stored elsewhere prove later that the chain was not rewritten. \
                 Operators see the checkpoints of all chains, other callers those of one \
                 platform. `keys` has the public key that verifies the signatures.",
            )
            .refuses(REFUSALS)
            .reads(list_checkpoints),
    ]
}

async fn list_of_platform(
    cx: &Cx,
    scope: PlatformScope<permission::AuditRead>,
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
    let mut report = audit::verify(cx, &scope, store, &key, &input.query).await?;
    if report.installation.is_some()
        && let Some(archive) = audit::newest_archive_of(&scope, store).await?
    {
        let digest = archive_digest(cx.app.blobs.as_ref(), &archive.blob_key()).await?;
        report.compare_archive(&archive, digest.as_deref());
    }
    Ok(Output::new(report))
}

/// Returns the digest of an archive's content; `None` if there is no such blob.
async fn archive_digest(blobs: &dyn Blobs, key: &str) -> Result<Option<String>> {
    let blob = match blobs.open(key).await {
        Ok(blob) => blob,
        Err(BlobError::Missing) => return Ok(None),
        Err(error) => return Err(Error::Upstream(Cause::new(error).to_string())),
    };
    let read = tokio::task::spawn_blocking(move || {
        let (mut lines, mut line) = (BufReader::new(blob), Vec::new());
        let mut digest = ContentDigest::default();
        while lines.read_until(b'\n', &mut line)? > 0 {
            digest.add(&line);
            line.clear();
        }
        Ok::<_, std::io::Error>(digest.finish())
    });
    match read.await {
        Ok(Ok(digest)) => Ok(Some(digest)),
        Ok(Err(error)) => Err(Error::Upstream(Cause::new(error).to_string())),
        Err(_) => Err(Error::Internal("reading an archive panicked".to_owned())),
    }
}

/// A page of checkpoints, with the public key that verifies their signatures.
#[derive(Clone, Debug, Serialize, JsonSchema)]
struct CheckpointList {
    /// The checkpoints on this page.
    data: Vec<AuditCheckpoint>,
    /// The position of this page in the list.
    pagination: PaginationP1,
    /// The public key that verifies the signatures of the checkpoints.
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
