//! Creating DNS records.

use super::stack::ensure_stack;
use crate::access::{PlatformScope, audited, ensure_room_unless_operator};
use crate::kernel::{Context, DnsRecordId, Error, Result, StackId, StoreError, Stored, grant};
use crate::port::UnitOfWork;
use crate::registry::{CreateDnsRecord, DnsRecord, DnsRecordQuery};
use crate::use_case::registry::hostname::{ensure_no_foreign_domain, has_dns_record};
use crate::use_case::registry::resource;

/// Creates a DNS record.
///
/// # Errors
/// `NOT_FOUND` for a stack or resource that is not one of the platform's; `CONFLICT` when the hostname has a
/// DNS record, whosever it is, and when another platform has proved it to be its own; `LIMIT_REACHED`.
pub async fn create(
    cx: &Context,
    scope: &PlatformScope<grant::DnsWrite>,
    uow: &mut dyn UnitOfWork,
    stack: &StackId,
    command: CreateDnsRecord,
) -> Result<Stored<DnsRecord>> {
    ensure_stack(scope, uow, stack).await?;
    resource::not_deleted(scope, uow, &command.resource_id).await?;
    ensure_no_foreign_domain(scope, uow, &command.hostname).await?;
    let records = scope.records::<DnsRecord>(uow);
    let limit = cx.limits.dns_records_per_platform;
    let message = "The platform has as many DNS records as it may have. Delete one first.";
    ensure_room_unless_operator(cx, records, &DnsRecordQuery::Active, limit, message).await?;
    let now = uow.now().await?;
    let id = DnsRecordId::generate(now, cx.entropy.as_ref());
    let record = DnsRecord::create(id, scope.id(), stack, command, now);
    let stored = audited::insert(cx, scope, uow, record, "dns_record.created").await;
    stored.map_err(hostname_conflict)
}

fn hostname_conflict(error: Error) -> Error {
    match error {
        Error::Store(StoreError::Conflict {
            index: "hostname", ..
        }) => has_dns_record(),
        error => error,
    }
}
