//! Creating DNS records.

use super::stack::ensure_stack;
use crate::access::{PlatformScope, audited, ensure_room_unless_operator};
use crate::kernel::{
    Context, DnsRecordId, Error, Machine, Result, StackId, StoreError, Stored, TOKEN_LENGTH, grant,
    secret_token,
};
use crate::port::UnitOfWork;
use crate::registry::{
    CreateDnsRecord, DnsRecord, DnsRecordEvent, DnsRecordQuery, DnsRecordStatus, NewDnsRecord,
};
use crate::use_case::provisioning::enqueue;
use crate::use_case::registry::hostname::{Claim, claim_of_record, has_dns_record};
use crate::use_case::registry::jobs::{DnsTarget, RouteDnsRecord};
use crate::use_case::registry::resource;

/// Creates a DNS record, and queues the job that has the hostname lead to the resource. Unless an operator enters it, or it
/// is reserved for the platform, the job waits for the proof that the hostname is the platform's. If the
/// same command created a record that has failed, queues a new job for that record.
///
/// # Errors
/// `NOT_FOUND` for a stack or resource that is not one of the platform's; `CONFLICT` when the platform has a DNS record of
/// the hostname; `HOSTNAME_RESERVED` for a hostname of the operator's; `LIMIT_REACHED`.
pub async fn create(
    cx: &Context,
    scope: &PlatformScope<grant::DnsWrite>,
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
        return enter_again(cx, scope, uow, &seen, claim).await;
    }
    let records = scope.records::<DnsRecord>(uow);
    let limit = cx.limits.dns_records_per_platform;
    let message = "The platform has as many DNS records as it may have. Delete one first.";
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

/// Tells whether a record has failed and was created by the same command.
fn is_failed_entry_of(seen: &DnsRecord, stack: &StackId, command: &CreateDnsRecord) -> bool {
    seen.status == DnsRecordStatus::Failed
        && seen.stack_id == *stack
        && seen.target_type == command.target_type
        && seen.resource_id == command.resource_id
        && seen.environment == command.environment
}

/// Queues a new job for a record that has failed.
async fn enter_again(
    cx: &Context,
    scope: &PlatformScope<grant::DnsWrite>,
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
    audited::replace(cx, scope, uow, seen, next, event.of_event().action).await
}

fn hostname_conflict(error: Error) -> Error {
    match error {
        Error::Store(StoreError::Conflict {
            index: "entered", ..
        }) => has_dns_record(),
        error => error,
    }
}
