//! Finding DNS records.

use super::rules::{not_deleted, of_stack};
use super::stack::ensure_stack;
use crate::access::PlatformScope;
use crate::kernel::{
    Context, DeletedFilter, DnsRecordId, ListQuery, Page, Result, StackId, Stored, grant,
};
use crate::port::UnitOfWork;
use crate::registry::{DnsRecord, DnsRecordQuery};

/// The DNS records of a stack, newest first.
///
/// # Errors
/// `NOT_FOUND` for an unknown stack; `INVALID_CURSOR`.
pub async fn list(
    cx: &Context,
    scope: &PlatformScope<grant::DnsRead>,
    uow: &mut dyn UnitOfWork,
    stack: &StackId,
    query: &ListQuery<DeletedFilter>,
) -> Result<Page<Stored<DnsRecord>>> {
    ensure_stack(scope, uow, stack).await?;
    let of_stack = DnsRecordQuery::OfStack {
        stack_id: stack.clone(),
        deleted: query.filter.include_deleted && cx.caller.is_operator(),
    };
    let records = scope.records::<DnsRecord>(uow);
    records.page(&of_stack, &query.page()).await
}

/// A DNS record that is not deleted.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn get(
    scope: &PlatformScope<grant::DnsRead>,
    uow: &mut dyn UnitOfWork,
    dns_record: &DnsRecordId,
) -> Result<Stored<DnsRecord>> {
    not_deleted(scope, uow, dns_record).await
}

/// As [`get`], of a stack.
///
/// # Errors
/// `NOT_FOUND`, also for the record of another stack.
pub async fn get_of_stack(
    scope: &PlatformScope<grant::DnsRead>,
    uow: &mut dyn UnitOfWork,
    stack: &StackId,
    dns_record: &DnsRecordId,
) -> Result<Stored<DnsRecord>> {
    of_stack(scope, uow, stack, dns_record).await
}
