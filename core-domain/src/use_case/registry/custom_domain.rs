//! Custom domains: creates, lists, updates and deletes them. For each domain a job looks up the required DNS records
//! until all exist, and then has the provider serve the hostname.

use super::dns_record;
use super::hostname::assign;
use super::hostname::{Claim, ensure_not_reserved, ensure_not_served_elsewhere, is_custom_domain};
use super::jobs::{AddDomain, DomainTarget, RemoveDomain, sync_if_suspended};
use crate::access::{
    Batches, Covers, OperatorScope, PlatformAccess, PlatformScope, PlatformWriter, SystemScope,
    audited, authorize_operator, ensure_room_unless_operator,
};
use crate::kernel::{
    Context, CustomDomainId, DeletedFilter, DnsRecordId, Error, IllegalTransition, JobId,
    ListQuery, Machine, Page, PlatformOwned, Record, Result, StoreError, Stored, TOKEN_LENGTH,
    UnixSeconds, grant, secret_token,
};
use crate::port::UnitOfWork;
use crate::provisioning::{ADD_DOMAIN, Job};
use crate::registry::{
    AddCustomDomain, CreateCustomDomain, CustomDomain, CustomDomainEvent, CustomDomainQuery,
    CustomDomainStatus, MissingRecord, ProviderName, SslStatus, UpdateCustomDomain,
};
use crate::use_case::provisioning;
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
pub async fn add(
    cx: &Context,
    scope: &PlatformScope<grant::DomainWrite>,
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
            return Err(is_custom_domain());
        }
        return requeue(cx, scope.writer(), uow, &seen).await;
    }
    command.check(["customHostname", "targetDnsRecordId"])?;
    let id = CustomDomainId::generate(uow.now().await?, cx.entropy.as_ref());
    let job = enqueue::<AddDomain>(cx, scope, uow, &DomainTarget::of(scope, &id)).await?;
    insert(cx, scope.writer(), uow, (id, job.id.clone()), command).await?;
    Ok(job)
}

/// Queues a new job for an existing domain. The job replaces the domain's earlier job.
///
/// # Errors
/// `LIMIT_REACHED` if too many jobs of the platform are queued; `VERSION_CONFLICT` if `If-Match` does not match.
pub(in crate::use_case::registry) async fn requeue(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<CustomDomain>,
) -> Result<Stored<Job>> {
    let job = enqueue::<AddDomain>(cx, scope, uow, &DomainTarget::of(scope, &seen.id)).await?;
    let (mut next, mut action) = (seen.edit(), "domain.updated");
    if seen.status == CustomDomainStatus::Failed {
        let event = CustomDomainEvent::Restart;
        next = next.after(event, uow.now().await?)?;
        action = event.transition().action;
    }
    next.job_id = job.id.clone();
    replace(cx, scope, uow, seen, next, action).await?;
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
pub async fn create(
    cx: &Context,
    scope: &PlatformScope<grant::DomainWrite>,
    uow: &mut dyn UnitOfWork,
    command: CreateCustomDomain,
) -> Result<Stored<CustomDomain>> {
    command.check(["hostname", "targetDns"])?;
    dns_record::not_deleted(scope, uow, &command.dns_record_id).await?;
    let id = CustomDomainId::generate(uow.now().await?, cx.entropy.as_ref());
    let target = DomainTarget::of(scope, &id);
    let job = enqueue::<AddDomain>(cx, scope, uow, &target).await?;
    insert(cx, scope.writer(), uow, (id, job.id.clone()), command).await
}

/// Inserts a domain with this id and this job.
async fn insert(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    (id, job): (CustomDomainId, JobId),
    command: CreateCustomDomain,
) -> Result<Stored<CustomDomain>> {
    ensure_not_reserved(cx, &command.hostname)?;
    let existing = CustomDomainQuery::All { deleted: false };
    let domains = scope.records::<CustomDomain>(uow);
    let limit = cx.limits.domains_per_platform;
    let message =
        "The platform has reached its maximum number of custom domains. Delete one first.";
    ensure_room_unless_operator(cx, domains, &existing, limit, message).await?;
    let random = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let now = uow.now().await?;
    let domain = CustomDomain::create(id, scope.id(), command, &random, job, now);
    let stored = audited::insert(cx, scope, uow, domain, "domain.created").await;
    stored.map_err(|error| match error {
        Error::Store(StoreError::Conflict {
            index: "entered", ..
        }) => is_custom_domain(),
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
    scope: &PlatformScope<grant::DomainWrite>,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
) -> Result<()> {
    let seen = not_deleted(scope, uow, domain).await?;
    soft_delete(cx, scope, uow, &seen).await?;
    queue_removal(cx, scope.writer(), uow, &seen).await
}

/// Queues the job that stops serving a domain, if the provider may serve it.
async fn queue_removal(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomain,
) -> Result<()> {
    if may_be_served(uow, domain).await? {
        let target = DomainTarget::of(scope, &domain.id);
        enqueue::<RemoveDomain>(cx, scope, uow, &target).await?;
    }
    Ok(())
}

/// Returns whether the provider may serve the domain. That is so if it has an id at the provider, or if its job may
/// have requested it without recording the result.
pub(in crate::use_case::registry) async fn may_be_served(
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomain,
) -> Result<bool> {
    if domain.cf_hostname_id.is_some() {
        return Ok(true);
    }
    let job = provisioning::find(SystemScope::new(), uow, &domain.job_id).await?;
    Ok(job.is_some_and(|job| job.kind == ADD_DOMAIN))
}

/// Deletes the domains of a DNS record. Queues jobs that stop serving those that have an id at the provider.
pub(in crate::use_case::registry) async fn delete_on(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    dns_record: &DnsRecordId,
) -> Result<()> {
    let on_record = CustomDomainQuery::OnDnsRecord(dns_record.clone());
    let mut domains = Batches::<CustomDomain>::of(on_record);
    while let Some(batch) = domains.next(scope.records(uow)).await? {
        for domain in batch {
            soft_delete(cx, scope, uow, &domain).await?;
            // A deprovisioning already stopped serving the other domains and cleared their ids.
            if domain.cf_hostname_id.is_some() {
                queue_removal(cx, scope, uow, &domain).await?;
            }
        }
    }
    Ok(())
}

/// Marks a domain as deleted.
async fn soft_delete(
    cx: &Context,
    scope: &impl Covers<PlatformOwned>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<CustomDomain>,
) -> Result<()> {
    let event = CustomDomainEvent::Delete;
    let next = seen.edit().after(event, uow.now().await?)?;
    audited::replace(cx, scope, uow, seen, next, event.transition().action).await?;
    Ok(())
}

/// Records the domain's id at the provider and the status of its certificate. Does not depend on the job of the domain.
/// A deleted domain does not change.
pub(in crate::use_case::registry) async fn record_hostname(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
    (cf_hostname_id, ssl_status): (&str, SslStatus),
) -> Result<()> {
    let found = scope.records::<CustomDomain>(uow).find(domain).await?;
    let is_there = |domain: &CustomDomain| domain.status != CustomDomainStatus::Deleted;
    let Some(seen) = found.filter(|domain| is_there(domain)) else {
        return Ok(());
    };
    let next = CustomDomain {
        cf_hostname_id: ProviderName::parse(cf_hostname_id).ok(),
        ssl_status,
        ..seen.edit()
    };
    audited::replace(cx, scope, uow, &seen, next, "domain.updated").await?;
    Ok(())
}

/// Records that the provider does not serve a domain: clears its id, if `is_gone` returns `true` for the current
/// record.
pub(in crate::use_case::registry) async fn clear_hostname_id(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
    is_gone: impl Fn(&CustomDomain) -> bool + Send,
) -> Result<()> {
    let found = scope.records::<CustomDomain>(uow).find(domain).await?;
    let Some(seen) = found.filter(|domain| is_gone(domain)) else {
        return Ok(());
    };
    let next = CustomDomain {
        cf_hostname_id: None,
        ..seen.edit()
    };
    audited::replace(cx, scope, uow, &seen, next, "domain.updated").await?;
    Ok(())
}

/// Returns the domain if it is unverified and this is its job.
async fn find_verified_by(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
    job: &JobId,
) -> Result<Option<Stored<CustomDomain>>> {
    let found = scope.records::<CustomDomain>(uow).find(domain).await?;
    Ok(found.filter(|domain| domain.is_verified_by(job)))
}

/// Records which DNS records are missing, as found by the domain's job.
pub(in crate::use_case::registry) async fn record_check(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
    job: &JobId,
    missing: &[MissingRecord],
) -> Result<()> {
    let Some(seen) = find_verified_by(scope, uow, domain, job).await? else {
        return Ok(());
    };
    let (next, event) = seen.edit().after_look_up(missing, uow.now().await?)?;
    let action = event.map_or("domain.updated", |event| event.transition().action);
    replace(cx, scope, uow, &seen, next, action).await?;
    Ok(())
}

/// Records that the domain's job found all DNS records. The platform takes the hostname from other platforms. The
/// domain becomes active later, when its certificate is in use.
pub(in crate::use_case::registry) async fn record_proof(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
    job: &JobId,
) -> Result<()> {
    let Some(seen) = find_verified_by(scope, uow, domain, job).await? else {
        return Ok(());
    };
    assign(cx, scope, uow, &seen.hostname, Claim::Proved).await?;
    set_proved(cx, scope, uow, &seen).await
}

/// Records that the domain's job found all DNS records before it was retried. That earlier proof does not take the
/// hostname from other platforms.
///
/// # Errors
/// `CONFLICT` if another platform is now served under the hostname.
pub(in crate::use_case::registry) async fn record_earlier_proof(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
    job: &JobId,
) -> Result<()> {
    let Some(seen) = find_verified_by(scope, uow, domain, job).await? else {
        return Ok(());
    };
    ensure_not_served_elsewhere(scope, uow, &seen.hostname).await?;
    set_proved(cx, scope, uow, &seen).await
}

/// Marks a domain as proved.
async fn set_proved(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<CustomDomain>,
) -> Result<()> {
    let next = seen.edit().after_proof(uow.now().await?);
    let action = if next.status == seen.status {
        "domain.updated"
    } else {
        CustomDomainEvent::Check.transition().action
    };
    replace(cx, scope, uow, seen, next, action).await?;
    Ok(())
}

/// Records the state of a domain and its certificate at the provider. With `activates`, a domain that is not active
/// becomes active.
///
/// # Errors
/// `CONFLICT` if the domain would become active and another platform now has the hostname.
pub(in crate::use_case::registry) async fn record_served(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    (domain, job): (&CustomDomainId, &JobId),
    (cf_hostname_id, ssl_status): (&str, SslStatus),
    activates: bool,
) -> Result<()> {
    let found = scope.records::<CustomDomain>(uow).find(domain).await?;
    let Some(seen) = found.filter(|domain| domain.is_served_by(job)) else {
        return Ok(());
    };
    let (mut next, mut action) = (seen.edit(), "domain.updated");
    if activates && seen.status != CustomDomainStatus::Active {
        let event = CustomDomainEvent::Activate;
        next = next.after(event, uow.now().await?)?;
        action = event.transition().action;
    }
    next.cf_hostname_id = ProviderName::parse(cf_hostname_id).ok();
    next.ssl_status = ssl_status;
    replace(cx, scope, uow, &seen, next, action).await?;
    sync_if_suspended(cx, scope, uow).await
}

/// Applies the outcome of its job to a domain: the possible ones of `events`, in their order, and the status of the
/// certificate. Does nothing if the domain has another job, is active or is deleted.
///
/// # Errors
/// `CONFLICT` if the domain would become active and another platform now has the hostname.
pub(in crate::use_case::registry) async fn apply_job_outcome(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    (domain, job): (&CustomDomainId, &JobId),
    events: &[CustomDomainEvent],
    certificate: Option<SslStatus>,
) -> Result<()> {
    const FINAL: [CustomDomainStatus; 2] =
        [CustomDomainStatus::Active, CustomDomainStatus::Deleted];
    let found = scope.records::<CustomDomain>(uow).find(domain).await?;
    let follows = |seen: &CustomDomain| seen.job_id == *job && !FINAL.contains(&seen.status);
    let Some(seen) = found.filter(|seen| follows(seen)) else {
        return Ok(());
    };
    let now = uow.now().await?;
    let (mut next, mut action) = (seen.edit(), "domain.updated");
    for event in events {
        if event.next(next.status).is_ok() {
            next = next.after(*event, now)?;
            action = event.transition().action;
            // A job's outcome activates a domain only if an operator forced the job to complete.
            next.is_vouched = *event == CustomDomainEvent::Activate;
        }
    }
    next.ssl_status = certificate.unwrap_or(next.ssl_status);
    replace(cx, scope, uow, &seen, next, action).await?;
    Ok(())
}

/// Maximum number of unverified domains in a list.
const MAX_UNVERIFIED: u32 = 1000;

/// Lists the domains of a platform, newest first. Only operators can include deleted domains.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn list(
    cx: &Context,
    scope: &PlatformScope<grant::DomainRead>,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<DeletedFilter>,
) -> Result<Page<Stored<CustomDomain>>> {
    let all = CustomDomainQuery::All {
        deleted: query.filter.include_deleted && cx.caller.is_operator(),
    };
    let domains = scope.records::<CustomDomain>(uow);
    domains.page(&all, &query.page()).await
}

/// Returns a domain.
///
/// # Errors
/// `NOT_FOUND` if the domain does not exist or is deleted.
pub async fn get(
    scope: &PlatformScope<grant::DomainRead>,
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

/// Stores a changed domain. A domain that becomes active takes its hostname.
///
/// # Errors
/// `CONFLICT` if the domain becomes active and another platform now has the hostname; `VERSION_CONFLICT` if `If-Match`
/// does not match.
async fn replace(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<CustomDomain>,
    next: CustomDomain,
    action: &'static str,
) -> Result<Stored<CustomDomain>> {
    let is_active = |domain: &CustomDomain| domain.status == CustomDomainStatus::Active;
    if is_active(&next) && !is_active(seen) {
        assign(cx, scope, uow, &next.hostname, Claim::Vouched).await?;
    }
    let stored = audited::replace(cx, scope, uow, seen, next, action).await;
    stored.map_err(|error| match error {
        Error::Store(StoreError::Conflict {
            index: "hostname", ..
        }) => is_custom_domain(),
        error => error,
    })
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
    scope: &PlatformScope<grant::DomainWrite>,
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
    let stored = replace(cx, scope.writer(), uow, &seen, next, action).await?;
    let is_over = matches!(
        stored.status,
        CustomDomainStatus::Deleted | CustomDomainStatus::Failed
    );
    if is_over && stored.status != seen.status {
        queue_removal(cx, scope.writer(), uow, &seen).await?;
    }
    Ok(stored)
}
