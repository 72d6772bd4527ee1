//! The audit log of authentication and authorization. Each read is recorded as well, in a unit of work of its own.

use core_domain::access::SignedInScope;
use core_domain::kernel::{AuditId, Code, ListQuery, Page, Result, Stored};
use core_domain::shared::{AuditEntry, AuditFilter};
use core_domain::use_case::registry::audit;

use crate::kernel::{Cx, Endpoint, Input, get};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/api/audit/events", "listAuditEvents")
            .summary("Lists audit entries, newest first.")
            .description(
                "Operators see all entries. Other callers see the entries of a platform that they \
                 may audit, if `platformId` is given; otherwise only their own actions. Every \
                 read adds an entry to the audit log.",
            )
            .refuses(&[Code::Forbidden, Code::NotFound])
            .plain_with_scope(list),
        get("/api/audit/events/{eventId}", "getAuditEvent")
            .summary("Returns an audit entry.")
            .description(
                "Returns an entry that the caller could also find with `listAuditEvents`. Every \
                 read adds an entry to the audit log.",
            )
            .plain_with_scope(get_event),
    ]
}

async fn list(
    cx: &Cx,
    scope: SignedInScope,
    input: Input<(), ListQuery<AuditFilter>>,
) -> Result<Page<Stored<AuditEntry>>> {
    audit::list_events(cx, &scope, cx.app.store.as_ref(), &input.query).await
}

async fn get_event(
    cx: &Cx,
    scope: SignedInScope,
    input: Input<(AuditId,)>,
) -> Result<Stored<AuditEntry>> {
    audit::get_event(cx, &scope, cx.app.store.as_ref(), &input.path.0).await
}
