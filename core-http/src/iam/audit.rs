//! The audit of authentication and authorization. A read is recorded itself, in a unit of its own.

use core_domain::access::SignedInScope;
use core_domain::kernel::{AuditId, Code, ListQuery, Page, Result, Stored};
use core_domain::shared::{AuditEntry, AuditFilter};
use core_domain::use_case::registry::audit;

use crate::kernel::{Cx, Endpoint, Input, get};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/api/audit/events", "listAuditEvents")
            .summary("Everything for operators, of a platform with `platformId`, or what the caller did; newest first.")
            .refuses(&[Code::Forbidden, Code::NotFound])
            .scoped(list),
        get("/api/audit/events/{eventId}", "getAuditEvent")
            .summary("One entry of the audit.")
            .scoped(get_event),
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
