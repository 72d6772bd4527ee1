//! DNS records of workspace stacks: creates, lists and deletes them. For each record a job points the hostname to the
//! record's resource.

use serde_json::json;

use super::hostname::{Claim, claim_of_record, dns_record_exists_error};
use super::jobs::{DnsTarget, RemoveDnsRecord, RouteDnsRecord, soft_delete_record};
use super::resource;
use crate::access::{PlatformAccess, PlatformScope, audited, ensure_room_unless_operator};
use crate::kernel::{
    Code, Context, DeletedFilter, DnsRecordId, Error, ListQuery, Machine, Page, Record, Result,
    StackId, StoreError, Stored, TOKEN_LENGTH, permission, secret_token,
};
use crate::port::UnitOfWork;
use crate::registry::{
    CreateDnsRecord, CustomDomain, CustomDomainQuery, DnsRecord, DnsRecordEvent, DnsRecordQuery,
    DnsRecordStatus, NewDnsRecord, WorkspaceStack,
};
use crate::use_case::provisioning::enqueue;

/// Creates a DNS record and queues the job that points the hostname to the resource.
///
/// The job waits until the platform has proved that it owns the hostname. No proof is needed if the caller is an
/// operator or the hostname is reserved for the platform. If the same command created a record that has failed, a new
/// job is queued for that record.
///
/// # Errors
/// - `NOT_FOUND` if the platform has no such stack or resource.
/// - `CONFLICT` if the platform already has a DNS record with this hostname.
/// - `HOSTNAME_RESERVED` if the hostname is in one of the operator's zones and not reserved for the platform.
/// - `LIMIT_REACHED` if the platform has its maximum number of DNS records, or if too many jobs are queued.
pub async fn create(
    cx: &Context,
    scope: &PlatformScope<permission::DnsWrite>,
    uow: &mut dyn UnitOfWork,
    stack: &StackId,
    command: CreateDnsRecord,
) -> Result<Stored<DnsRecord>> {
    ensure_stack(scope, uow, stack).await?;
    resource::not_deleted(scope, uow, &command.resource_id).await?;
    let claim = claim_of_record(cx, scope, &command.hostname)?;
    let entered = DnsRecordQuery::Entered(command.hostname.clone());
    let entered = scope.records::<DnsRecord>(uow).first(&entered).await?;
    if let Some(seen) = entered.filter(|seen| is_failed_entry_of(seen, stack, &command)) {
        return restart(cx, scope, uow, &seen, claim).await;
    }
    let records = scope.records::<DnsRecord>(uow);
    let limit = cx.limits.dns_records_per_platform;
    let message = "The platform has reached its maximum number of DNS records. Delete one first.";
    let existing = DnsRecordQuery::All { deleted: false };
    ensure_room_unless_operator(cx, records, &existing, limit, message).await?;
    let now = uow.now().await?;
    let id = DnsRecordId::generate(now, cx.entropy.as_ref());
    let target = DnsTarget::of(scope, &id);
    let job = enqueue::<RouteDnsRecord>(cx, scope, uow, &target).await?;
    let new = NewDnsRecord {
        id,
        random: secret_token(cx.entropy.as_ref(), TOKEN_LENGTH),
        is_vouched: claim == Claim::Vouched,
        job_id: job.id.clone(),
    };
    let record = DnsRecord::create(new, scope.id(), stack, command, now);
    let stored = audited::insert(cx, scope, uow, record, "dns_record.created").await;
    stored.map_err(hostname_conflict)
}

/// Returns whether a record has failed and was created by the same command.
fn is_failed_entry_of(seen: &DnsRecord, stack: &StackId, command: &CreateDnsRecord) -> bool {
    seen.status == DnsRecordStatus::Failed
        && seen.stack_id == *stack
        && seen.target_type == command.target_type
        && seen.resource_id == command.resource_id
        && seen.environment == command.environment
}

/// Queues a new job for a record that has failed.
async fn restart(
    cx: &Context,
    scope: &PlatformScope<permission::DnsWrite>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<DnsRecord>,
    claim: Claim,
) -> Result<Stored<DnsRecord>> {
    let target = DnsTarget::of(scope, &seen.id);
    let job = enqueue::<RouteDnsRecord>(cx, scope, uow, &target).await?;
    let mut next = seen.edit();
    next.is_vouched = claim == Claim::Vouched;
    next.job_id = Some(job.id.clone());
    let event = DnsRecordEvent::Restart;
    let next = next.after(event)?;
    audited::replace(cx, scope, uow, seen, next, event.transition().action).await
}

/// Converts a conflict on the unique index `entered` to the error for a hostname that already has a DNS record.
fn hostname_conflict(error: Error) -> Error {
    match error {
        Error::Store(StoreError::Conflict {
            index: "entered", ..
        }) => dns_record_exists_error(),
        error => error,
    }
}

/// Deletes a DNS record of a stack. A job removes the route from the hostname to the resource.
///
/// # Errors
/// `NOT_FOUND` if the record does not exist or is already deleted; `CONFLICT` if a custom domain uses the record;
/// `VERSION_CONFLICT` if `If-Match` does not match.
pub async fn delete(
    cx: &Context,
    scope: &PlatformScope<permission::DnsWrite>,
    uow: &mut dyn UnitOfWork,
    stack: &StackId,
    dns_record: &DnsRecordId,
) -> Result<()> {
    let seen = of_stack(scope, uow, stack, dns_record).await?;
    let domains = CustomDomainQuery::OnDnsRecord(dns_record.clone());
    let domains = scope.records::<CustomDomain>(uow).count(&domains).await?;
    if domains > 0 {
        return Err(Error::Refused {
            code: Code::Conflict,
            message: "Custom domains use this DNS record. Delete them first.".to_owned(),
            details: json!({ "domains": domains }),
        });
    }
    soft_delete_record(cx, scope, uow, &seen).await?;
    let target = DnsTarget::of(scope, dns_record);
    enqueue::<RemoveDnsRecord>(cx, scope, uow, &target).await?;
    Ok(())
}

/// Lists the DNS records of a stack, newest first. Only operators can include deleted records.
///
/// # Errors
/// `NOT_FOUND` if the stack does not exist; `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn list(
    cx: &Context,
    scope: &PlatformScope<permission::DnsRead>,
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
    records.page(&of_stack, &query.uncounted_page()).await
}

/// Returns a DNS record.
///
/// # Errors
/// `NOT_FOUND` if the record does not exist or is deleted.
pub async fn get(
    scope: &PlatformScope<permission::DnsRead>,
    uow: &mut dyn UnitOfWork,
    dns_record: &DnsRecordId,
) -> Result<Stored<DnsRecord>> {
    not_deleted(scope, uow, dns_record).await
}

/// Returns a DNS record of a stack.
///
/// # Errors
/// `NOT_FOUND` if the stack does not exist, or the record does not exist, is deleted or belongs to another stack.
pub async fn get_of_stack(
    scope: &PlatformScope<permission::DnsRead>,
    uow: &mut dyn UnitOfWork,
    stack: &StackId,
    dns_record: &DnsRecordId,
) -> Result<Stored<DnsRecord>> {
    of_stack(scope, uow, stack, dns_record).await
}

/// Returns a DNS record of the platform; `NOT_FOUND` if it does not exist or is deleted.
pub(in crate::use_case::registry) async fn not_deleted(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    dns_record: &DnsRecordId,
) -> Result<Stored<DnsRecord>> {
    let found = scope.records::<DnsRecord>(uow).get(dns_record).await?;
    if found.status == DnsRecordStatus::Deleted {
        return Err(Error::NotFound(DnsRecord::KIND));
    }
    Ok(found)
}

/// Returns a DNS record of a stack; `NOT_FOUND` if the stack has no such record, or it is deleted.
async fn of_stack(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    stack: &StackId,
    dns_record: &DnsRecordId,
) -> Result<Stored<DnsRecord>> {
    ensure_stack(scope, uow, stack).await?;
    let found = not_deleted(scope, uow, dns_record).await?;
    if found.stack_id != *stack {
        return Err(Error::NotFound(DnsRecord::KIND));
    }
    Ok(found)
}

/// Returns `NOT_FOUND` if the platform has no such stack.
async fn ensure_stack(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    stack: &StackId,
) -> Result<()> {
    let stack = scope.records::<WorkspaceStack>(uow).get(stack).await;
    stack.map(drop)
}
