//! Custom domains: creates, lists, updates and deletes them. For each domain a job looks up the required DNS records
//! until all exist, and then has the provider serve the hostname.

use super::dns_record;
use super::hostname::{custom_domain_exists_error, ensure_not_reserved};
use super::jobs::{
    AddDomain, DomainTarget, queue_domain_removal, replace_domain, requeue, soft_delete_domain,
};
use super::limited_object;
use crate::access::{
    OperatorScope, PlatformAccess, PlatformScope, PlatformWriter, audited, authorize_operator,
    ensure_room_unless_operator,
};
use crate::billing::usage::LimitedObject;
use crate::kernel::{
    Context, CustomDomainId, DeletedFilter, Error, IllegalTransition, JobId, ListQuery, Machine,
    Page, Record, Result, StoreError, Stored, TOKEN_LENGTH, UnixSeconds, permission, secret_token,
};
use crate::port::UnitOfWork;
use crate::provisioning::Job;
use crate::registry::{
    AddCustomDomain, CreateCustomDomain, CustomDomain, CustomDomainEvent, CustomDomainQuery,
    CustomDomainStatus, UpdateCustomDomain,
};
use crate::use_case::provisioning::enqueue;

/// Creates a custom domain, unless the platform already has it, and queues the job that proves its ownership and serves
/// it.
///
/// The new job replaces the domain's earlier job, which then ends without effect. A failed domain is verified again.
///
/// # Errors
/// - `NOT_FOUND` if the platform has no such DNS record.
/// - `CONFLICT` if the platform has the hostname on another DNS record.
/// - `HOSTNAME_RESERVED` if the hostname is in one of the operator's zones.
/// - `VALIDATION_ERROR` if the hostname can never be verified.
/// - `LIMIT_REACHED` if the platform has its maximum number of custom domains, or if too many jobs are queued.
/// - `QUOTA_EXCEEDED` if its plan allows no more custom domains.
pub async fn add(
    cx: &Context,
    scope: &PlatformScope<permission::DomainWrite>,
    uow: &mut dyn UnitOfWork,
    wanted: AddCustomDomain,
) -> Result<Stored<Job>> {
    let record = dns_record::not_deleted(scope, uow, &wanted.target_dns_record_id).await?;
    let entered = CustomDomainQuery::Entered(wanted.custom_hostname.clone());
    let entered = scope.records::<CustomDomain>(uow).first(&entered).await?;
    let command = CreateCustomDomain {
        dns_record_id: wanted.target_dns_record_id,
        hostname: wanted.custom_hostname,
        target_dns: record.hostname.clone(),
        cf_hostname_id: None,
    };
    if let Some(seen) = entered {
        if seen.dns_record_id != command.dns_record_id {
            return Err(custom_domain_exists_error());
        }
        return requeue(cx, scope.writer(), uow, &seen).await;
    }
    command.check(["customHostname", "targetDnsRecordId"])?;
    let id = CustomDomainId::generate(uow.now().await?, cx.entropy.as_ref());
    let job = enqueue::<AddDomain>(cx, scope, uow, &DomainTarget::of(scope, &id)).await?;
    insert(cx, scope.writer(), uow, id, job.id.clone(), command).await?;
    Ok(job)
}

/// Creates a custom domain and queues the job that proves its ownership and serves it.
///
/// Another platform may have the same hostname or be served under it. Each platform proves the hostname with its own
/// text, and the platform that proved it last gets it.
///
/// # Errors
/// - `NOT_FOUND` if the platform has no such DNS record.
/// - `CONFLICT` if the platform already has a custom domain with this hostname.
/// - `HOSTNAME_RESERVED` if the hostname is in one of the operator's zones.
/// - `VALIDATION_ERROR` if the hostname can never be verified.
/// - `LIMIT_REACHED` if the platform has its maximum number of custom domains, or if too many jobs are queued.
/// - `QUOTA_EXCEEDED` if its plan allows no more custom domains.
pub async fn create(
    cx: &Context,
    scope: &PlatformScope<permission::DomainWrite>,
    uow: &mut dyn UnitOfWork,
    command: CreateCustomDomain,
) -> Result<Stored<CustomDomain>> {
    command.check(["hostname", "targetDns"])?;
    dns_record::not_deleted(scope, uow, &command.dns_record_id).await?;
    let id = CustomDomainId::generate(uow.now().await?, cx.entropy.as_ref());
    let target = DomainTarget::of(scope, &id);
    let job = enqueue::<AddDomain>(cx, scope, uow, &target).await?;
    insert(cx, scope.writer(), uow, id, job.id.clone(), command).await
}

/// Inserts a domain with this id and this job.
async fn insert(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    id: CustomDomainId,
    job: JobId,
    command: CreateCustomDomain,
) -> Result<Stored<CustomDomain>> {
    ensure_not_reserved(cx, &command.hostname)?;
    let existing = CustomDomainQuery::All { deleted: false };
    let domains = scope.records::<CustomDomain>(uow);
    let limit = cx.limits.domains_per_platform;
    let message =
        "The platform has reached its maximum number of custom domains. Delete one first.";
    ensure_room_unless_operator(cx, domains, &existing, limit, message).await?;
    limited_object::ensure_room(cx, scope, uow, LimitedObject::CustomDomains).await?;
    let random = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let now = uow.now().await?;
    let domain = CustomDomain::create(id, scope.id(), command, &random, job, now);
    let stored = audited::insert(cx, scope, uow, domain, "domain.created").await;
    stored.map_err(|error| match error {
        Error::Store(StoreError::Conflict {
            index: "entered", ..
        }) => custom_domain_exists_error(),
        error => error,
    })
}

/// Deletes a domain, so that its hostname can be used again. If the provider may serve the hostname, queues a job that
/// stops it.
///
/// # Errors
/// `NOT_FOUND` if the domain does not exist or is already deleted; `VERSION_CONFLICT` if `If-Match` does not match.
pub async fn delete(
    cx: &Context,
    scope: &PlatformScope<permission::DomainWrite>,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
) -> Result<()> {
    let seen = not_deleted(scope, uow, domain).await?;
    soft_delete_domain(cx, scope, uow, &seen).await?;
    queue_domain_removal(cx, scope.writer(), uow, &seen).await
}

/// Maximum number of unverified domains in a list.
const MAX_UNVERIFIED: u32 = 1000;

/// Lists the domains of a platform, newest first. Only operators can include deleted domains.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn list(
    cx: &Context,
    scope: &PlatformScope<permission::DomainRead>,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<DeletedFilter>,
) -> Result<Page<Stored<CustomDomain>>> {
    let all = CustomDomainQuery::All {
        deleted: query.filter.include_deleted && cx.caller.is_operator(),
    };
    let domains = scope.records::<CustomDomain>(uow);
    domains.page(&all, &query.uncounted_page()).await
}

/// Returns a domain.
///
/// # Errors
/// `NOT_FOUND` if the domain does not exist or is deleted.
pub async fn get(
    scope: &PlatformScope<permission::DomainRead>,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
) -> Result<Stored<CustomDomain>> {
    not_deleted(scope, uow, domain).await
}

/// Lists the domains of all platforms whose verification is pending, oldest first, at most 1,000.
///
/// # Errors
/// Only those of the store.
pub async fn list_unverified(
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<CustomDomain>>> {
    let unverified = CustomDomainQuery::Unverified;
    let domains = scope.records::<CustomDomain>(uow);
    domains.list(&unverified, MAX_UNVERIFIED).await
}

/// Returns a custom domain of the platform; `NOT_FOUND` if it does not exist or is deleted.
async fn not_deleted(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
) -> Result<Stored<CustomDomain>> {
    let found = scope.records::<CustomDomain>(uow).get(domain).await?;
    if found.status == CustomDomainStatus::Deleted {
        return Err(Error::NotFound(CustomDomain::KIND));
    }
    Ok(found)
}

/// Updates a domain.
///
/// If the status changes to `pending`, a new job verifies the domain. If it changes to `active`, a new job serves it.
/// If it changes to `failed` or `deleted`, a job stops serving it.
///
/// Only operators may set `verifiedAt`, the status `active`, or a certificate status that requires a proof.
/// `verifiedAt` requires that the domain is active after the update.
///
/// # Errors
/// - `NOT_FOUND` if the domain does not exist.
/// - `FORBIDDEN` if the update is reserved for operators.
/// - `INVALID_STATE` if the status cannot change to the new one, or if `verifiedAt` is set for a domain that is not
///   active.
/// - `CONFLICT` if the domain would become active and another platform has the hostname.
/// - `VERSION_CONFLICT` if `If-Match` does not match.
pub async fn update(
    cx: &Context,
    scope: &PlatformScope<permission::DomainWrite>,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
    command: UpdateCustomDomain,
) -> Result<Stored<CustomDomain>> {
    let seen = not_deleted(scope, uow, domain).await?;
    let (mut next, mut action) = (seen.edit(), "domain.updated");
    if let Some(status) = command.status
        && let Some(event) = CustomDomainEvent::between(seen.status, status)?
    {
        next = next.after(event, uow.now().await?)?;
        action = event.transition().action;
        if next.status == CustomDomainStatus::Active {
            authorize_operator(cx)?;
            next.is_vouched = true;
        }
        if event == CustomDomainEvent::Restart || next.status == CustomDomainStatus::Active {
            let target = DomainTarget::of(scope, domain);
            let job = enqueue::<AddDomain>(cx, scope, uow, &target).await?;
            next.job_id = job.id.clone();
        }
    }
    if let Some(UnixSeconds(verified_at)) = command.verified_at {
        authorize_operator(cx)?;
        if next.status != CustomDomainStatus::Active {
            return Err(IllegalTransition::new(next.status, [CustomDomainStatus::Active]).into());
        }
        next.verified_at = Some(verified_at);
    }
    if let Some(ssl_status) = command.ssl_status
        && ssl_status.requires_proof()
        && ssl_status != next.ssl_status
    {
        authorize_operator(cx)?;
    }
    command.apply_to(&mut next);
    let stored = replace_domain(cx, scope.writer(), uow, &seen, next, action).await?;
    let is_over = matches!(
        stored.status,
        CustomDomainStatus::Deleted | CustomDomainStatus::Failed
    );
    if is_over && stored.status != seen.status {
        queue_domain_removal(cx, scope.writer(), uow, &seen).await?;
    }
    Ok(stored)
}
