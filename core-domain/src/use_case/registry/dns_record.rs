//! DNS records of workspace stacks: creates, lists and deletes them. For each record a job points the hostname to the
//! record's resource.

use serde_json::json;

use super::hostname::assign;
use super::hostname::{Claim, claim_of_record, ensure_not_served_elsewhere, has_dns_record};
use super::jobs::{DnsTarget, RemoveDnsRecord, RouteDnsRecord, sync_if_suspended};
use super::{custom_domain, resource};
use crate::access::{
    Batches, Covers, PlatformAccess, PlatformScope, PlatformWriter, audited,
    ensure_room_unless_operator,
};
use crate::kernel::{
    Code, Context, DeletedFilter, DnsRecordId, EntityId, Error, JobId, Line, ListQuery, Machine,
    Page, PlatformOwned, Record, ResourceId, Result, StackId, StoreError, Stored, TOKEN_LENGTH,
    grant, secret_token,
};
use crate::port::UnitOfWork;
use crate::registry::{
    CreateDnsRecord, CustomDomain, CustomDomainQuery, DnsRecord, DnsRecordEvent, DnsRecordQuery,
    DnsRecordStatus, MissingRecord, NewDnsRecord, Resource, ResourceQuery, WorkspaceStack,
    WorkspaceStackQuery,
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
    audited::replace(cx, scope, uow, seen, next, event.transition().action).await
}

/// Converts a conflict on the unique index `entered` to the error for a hostname that already has a DNS record.
fn hostname_conflict(error: Error) -> Error {
    match error {
        Error::Store(StoreError::Conflict {
            index: "entered", ..
        }) => has_dns_record(),
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
    scope: &PlatformScope<grant::DnsWrite>,
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
    soft_delete(cx, scope, uow, &seen).await?;
    let target = DnsTarget::of(scope, dns_record);
    enqueue::<RemoveDnsRecord>(cx, scope, uow, &target).await?;
    Ok(())
}

/// Deletes the DNS records of a removed resource and their custom domains.
pub(in crate::use_case::registry) async fn delete_of_resource(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<()> {
    let leading = DnsRecordQuery::LeadingTo(resource.clone());
    let mut records = Batches::<DnsRecord>::of(leading);
    while let Some(batch) = records.next(scope.records(uow)).await? {
        for record in batch {
            custom_domain::delete_on(cx, scope, uow, &record.id).await?;
            soft_delete(cx, scope, uow, &record).await?;
            // The removal of the resource's object also removes its routes. The job covers a route that remains.
            if record.cf_route_id.is_some() {
                let target = DnsTarget::of(scope, &record.id);
                enqueue::<RemoveDnsRecord>(cx, scope, uow, &target).await?;
            }
        }
    }
    Ok(())
}

/// Marks a DNS record as deleted.
async fn soft_delete(
    cx: &Context,
    scope: &impl Covers<PlatformOwned>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<DnsRecord>,
) -> Result<()> {
    let event = DnsRecordEvent::Delete;
    let next = seen.edit().after(event)?;
    audited::replace(cx, scope, uow, seen, next, event.transition().action).await?;
    Ok(())
}

/// Returns the record if it is pending and this is its job.
async fn find_pending(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    (record, job): (&DnsRecordId, &JobId),
) -> Result<Option<Stored<DnsRecord>>> {
    let found = scope.records::<DnsRecord>(uow).find(record).await?;
    Ok(found.filter(|record| record.is_pending_for(job)))
}

/// Records which DNS records are missing, as found by the record's job. If none is missing, the platform takes the
/// hostname.
///
/// # Errors
/// `CONFLICT` if no proof is needed and another platform is served under the hostname.
pub(in crate::use_case::registry) async fn record_proof(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    own: (&DnsRecordId, &JobId),
    missing: &[MissingRecord],
) -> Result<()> {
    let Some(seen) = find_pending(scope, uow, own).await? else {
        return Ok(());
    };
    if missing.is_empty() {
        let claim = if seen.is_vouched {
            Claim::Vouched
        } else {
            Claim::Proved
        };
        assign(cx, scope, uow, &seen.hostname, claim).await?;
    }
    let next = seen.edit().checked(missing, uow.now().await?);
    audited::replace(cx, scope, uow, &seen, next, "dns_record.checked").await?;
    Ok(())
}

/// Records that the hostname points to the resource.
///
/// # Errors
/// `CONFLICT` if another platform is now served under the hostname.
pub(in crate::use_case::registry) async fn record_route(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    own: (&DnsRecordId, &JobId),
    route: &str,
) -> Result<()> {
    let Some(seen) = find_pending(scope, uow, own).await? else {
        return Ok(());
    };
    ensure_not_served_elsewhere(scope, uow, &seen.hostname).await?;
    let event = DnsRecordEvent::Route;
    let mut next = seen.edit().after(event)?;
    next.cf_route_id = Line::parse(route).ok();
    replace(cx, scope, uow, &seen, next, event.transition().action).await?;
    sync_if_suspended(cx, scope, uow).await
}

/// Applies the outcome of its job to a record: the possible ones of `events`, in their order. Does nothing if the
/// record has another job, is active or is deleted.
///
/// # Errors
/// `CONFLICT` if the record would become active and another platform is served under the hostname.
pub(in crate::use_case::registry) async fn apply_job_outcome(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    (record, job): (&DnsRecordId, &JobId),
    events: &[DnsRecordEvent],
) -> Result<()> {
    let found = scope.records::<DnsRecord>(uow).find(record).await?;
    let follows = |seen: &DnsRecord| {
        let is_open = matches!(
            seen.status,
            DnsRecordStatus::Pending | DnsRecordStatus::Failed
        );
        is_open && seen.job_id.as_ref() == Some(job)
    };
    let Some(seen) = found.filter(|seen| follows(seen)) else {
        return Ok(());
    };
    let (mut next, mut action) = (seen.edit(), "dns_record.updated");
    for event in events {
        if event.next(next.status).is_ok() {
            next = next.after(*event)?;
            action = event.transition().action;
        }
    }
    if next.status == DnsRecordStatus::Active {
        ensure_not_served_elsewhere(scope, uow, &next.hostname).await?;
        // Only an operator who forces the job to complete activates the record this way.
        next.is_vouched = true;
    }
    replace(cx, scope, uow, &seen, next, action).await
}

/// Stores a changed record. Converts a conflict on the unique index `hostname`.
async fn replace(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<DnsRecord>,
    next: DnsRecord,
    action: &'static str,
) -> Result<()> {
    let stored = audited::replace(cx, scope, uow, seen, next, action).await;
    let stored = stored.map_err(|error| match error {
        Error::Store(StoreError::Conflict {
            index: "hostname", ..
        }) => has_dns_record(),
        error => error,
    });
    stored.map(drop)
}

/// Lists the DNS records of a stack, newest first. Only operators can include deleted records.
///
/// # Errors
/// `NOT_FOUND` if the stack does not exist; `INVALID_CURSOR` if the cursor does not belong to this list.
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

/// Returns a DNS record.
///
/// # Errors
/// `NOT_FOUND` if the record does not exist or is deleted.
pub async fn get(
    scope: &PlatformScope<grant::DnsRead>,
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
    scope: &PlatformScope<grant::DnsRead>,
    uow: &mut dyn UnitOfWork,
    stack: &StackId,
    dns_record: &DnsRecordId,
) -> Result<Stored<DnsRecord>> {
    of_stack(scope, uow, stack, dns_record).await
}

/// Records the id of a DNS record's route. Does not depend on the job of the record. `None` means that the provider
/// does not route the hostname.
pub(in crate::use_case::registry) async fn record_route_id(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    record: &DnsRecordId,
    route: Option<&str>,
) -> Result<()> {
    let Some(seen) = scope.records::<DnsRecord>(uow).find(record).await? else {
        return Ok(());
    };
    let next = DnsRecord {
        cf_route_id: route.and_then(|route| Line::parse(route).ok()),
        ..seen.edit()
    };
    audited::replace(cx, scope, uow, &seen, next, "dns_record.updated").await?;
    Ok(())
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

/// Returns `CONFLICT` if a DNS record that is not deleted points to the resource.
pub(in crate::use_case::registry) async fn ensure_no_dns_records(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<()> {
    let leading = count_leading_to(scope, uow, resource).await?;
    if leading == 0 {
        return Ok(());
    }
    Err(Error::Refused {
        code: Code::Conflict,
        message: "DNS records point to this resource. Delete them first.".to_owned(),
        details: json!({ "dnsRecords": leading }),
    })
}

/// Counts the DNS records of a resource that are not deleted.
pub(in crate::use_case::registry) async fn count_leading_to(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<u64> {
    let leading = DnsRecordQuery::LeadingTo(resource.clone());
    scope.records::<DnsRecord>(uow).count(&leading).await
}

/// Returns `CONFLICT` if a DNS record points to one of the entity's resources, or belongs to one of its workspace
/// stacks. Deleted resources and records do not count.
pub(in crate::use_case::registry) async fn ensure_entity_has_no_dns_records(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    entity: &EntityId,
) -> Result<()> {
    let of_entity = ResourceQuery::OfEntity {
        entity_id: entity.clone(),
        deleted: false,
    };
    let mut resources = Batches::<Resource>::of(of_entity);
    while let Some(batch) = resources.next(scope.records(uow)).await? {
        for resource in batch {
            ensure_no_dns_records(scope, uow, &resource.id).await?;
        }
    }
    let mut stacks = Batches::<WorkspaceStack>::of(WorkspaceStackQuery::of_tenant(entity));
    while let Some(batch) = stacks.next(scope.records(uow)).await? {
        for stack in batch {
            ensure_none_of(scope, uow, &stack.id).await?;
        }
    }
    Ok(())
}

/// Returns `CONFLICT` if a stack has DNS records that are not deleted.
async fn ensure_none_of(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    stack: &StackId,
) -> Result<()> {
    let of_stack = DnsRecordQuery::OfStack {
        stack_id: stack.clone(),
        deleted: false,
    };
    let records = scope.records::<DnsRecord>(uow).count(&of_stack).await?;
    if records == 0 {
        return Ok(());
    }
    Err(Error::Refused {
        code: Code::Conflict,
        message: "A workspace stack has DNS records. Delete them first.".to_owned(),
        details: json!({ "dnsRecords": records }),
    })
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
