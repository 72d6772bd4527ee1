//! Custom domains. A job looks their DNS records up until all are there, and has them served.

use super::dns_record;
use super::hostname::take;
use super::hostname::{Claim, ensure_not_foreign, ensure_not_reserved, is_custom_domain};
use super::jobs::{AddDomain, DomainTarget, RemoveDomain, sync_if_suspended};
use crate::access::{
    Batches, Covers, OperatorScope, PlatformAccess, PlatformScope, PlatformWriter, SystemScope,
    audited, authorize_operator, ensure_room_unless_operator,
};
use crate::kernel::{
    Context, CustomDomainId, DeletedFilter, DnsRecordId, Error, IllegalMove, JobId, ListQuery,
    Machine, Page, PlatformOwned, Record, Result, StoreError, Stored, TOKEN_LENGTH, UnixSeconds,
    grant, secret_token,
};
use crate::port::UnitOfWork;
use crate::provisioning::{ADD_DOMAIN, Job};
use crate::registry::{
    AddCustomDomain, CreateCustomDomain, CustomDomain, CustomDomainEvent, CustomDomainQuery,
    CustomDomainStatus, MissingRecord, ProviderName, SslStatus, UpdateCustomDomain,
};
use crate::use_case::provisioning;
use crate::use_case::provisioning::enqueue;

/// Enters a domain, unless the platform has, and queues the job that proves whose it is and has it served. From then on the
/// domain follows this job and no earlier one, which ends without an effect; one that failed is verified anew.
///
/// # Errors
/// `NOT_FOUND` for a DNS record that is not one of the platform's; `CONFLICT` when the platform has entered the hostname
/// on another DNS record; `HOSTNAME_RESERVED` for a hostname of the operator's; `VALIDATION_ERROR` for what could never be
/// verified; `LIMIT_REACHED`.
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
        return resume(cx, scope.writer(), uow, &seen).await;
    }
    command.check(["customHostname", "targetDnsRecordId"])?;
    let id = CustomDomainId::generate(uow.now().await?, cx.entropy.as_ref());
    let job = enqueue::<AddDomain>(cx, scope, uow, &DomainTarget::of(scope, &id)).await?;
    insert(cx, scope.writer(), uow, (id, job.id.clone()), command).await?;
    Ok(job)
}

/// Queues a new job for a domain that the platform has entered. The domain follows this job from now on.
///
/// # Errors
/// `LIMIT_REACHED`; `VERSION_CONFLICT`.
pub(in crate::use_case::registry) async fn resume(
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
        action = event.of_event().action;
    }
    next.job_id = job.id.clone();
    replace(cx, scope, uow, seen, next, action).await?;
    Ok(job)
}

/// Enters a domain and queues the job that proves whose it is and has it served. That somebody else has entered the
/// hostname, or is served under it, is no reason not to: the records prove each platform by a text of its own, and who is
/// proved right last has it.
///
/// # Errors
/// `NOT_FOUND` for a DNS record that is not one of the platform's; `CONFLICT` when the platform has entered the hostname;
/// `HOSTNAME_RESERVED` for a hostname of the operator's; `VALIDATION_ERROR` for what could never be verified;
/// `LIMIT_REACHED`.
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

/// Enters a domain under this id, which this job works on.
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
    let message = "The platform has as many custom domains as it may have. Delete one first.";
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

/// Deletes a domain; its hostname is free again. Where the provider may serve it, a job ends that.
///
/// # Errors
/// `NOT_FOUND`, also the second time; `VERSION_CONFLICT`.
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

/// Queues the job that has a deleted domain not served any more, where it may be.
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

/// Whether the provider may serve the domain: it did, or a job asks it to and may not have said so yet.
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

/// Deletes the domains on a DNS record. What the provider serves of them, jobs end.
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
            // A deprovisioning has seen to all that may be served, and so it has no id any more.
            if domain.cf_hostname_id.is_some() {
                queue_removal(cx, scope, uow, &domain).await?;
            }
        }
    }
    Ok(())
}

async fn soft_delete(
    cx: &Context,
    scope: &impl Covers<PlatformOwned>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<CustomDomain>,
) -> Result<()> {
    let event = CustomDomainEvent::Delete;
    let next = seen.edit().after(event, uow.now().await?)?;
    audited::replace(cx, scope, uow, seen, next, event.of_event().action).await?;
    Ok(())
}

/// Records the id and the certificate's status of a domain at the provider, for any job. A deleted domain does not change.
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

/// Records that the provider does not serve a domain, if `is_gone` still holds for it.
pub(in crate::use_case::registry) async fn forget_hostname(
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

/// The domain, if it is to be verified, and by this job.
async fn find_verified_by(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
    job: &JobId,
) -> Result<Option<Stored<CustomDomain>>> {
    let found = scope.records::<CustomDomain>(uow).find(domain).await?;
    Ok(found.filter(|domain| domain.is_verified_by(job)))
}

/// Keeps which DNS records the job found missing.
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
    let (next, event) = seen.edit().checked(missing, uow.now().await?)?;
    let action = event.map_or("domain.updated", |event| event.of_event().action);
    replace(cx, scope, uow, &seen, next, action).await?;
    Ok(())
}

/// Keeps that the job found all DNS records of a domain, which becomes active when its certificate is in use. The platform
/// takes the hostname from the one that was served under it.
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
    take(cx, scope, uow, &seen.hostname, Claim::Proved).await?;
    set_proved(cx, scope, uow, &seen).await
}

/// Keeps that the job found all DNS records of a domain in an attempt before its retry. What was proved then takes no
/// hostname now.
///
/// # Errors
/// `CONFLICT` if another platform is served under the hostname by now.
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
    ensure_not_foreign(scope, uow, &seen.hostname).await?;
    set_proved(cx, scope, uow, &seen).await
}

async fn set_proved(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<CustomDomain>,
) -> Result<()> {
    let next = seen.edit().proved(uow.now().await?);
    let action = if next.status == seen.status {
        "domain.updated"
    } else {
        CustomDomainEvent::Check.of_event().action
    };
    replace(cx, scope, uow, seen, next, action).await?;
    Ok(())
}

/// Keeps where a domain and its certificate stand at the provider. One that is not active becomes it when `activates`.
///
/// # Errors
/// `CONFLICT` for a domain that is to be active and whose hostname is another platform's by now.
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
        action = event.of_event().action;
    }
    next.cf_hostname_id = ProviderName::parse(cf_hostname_id).ok();
    next.ssl_status = ssl_status;
    replace(cx, scope, uow, &seen, next, action).await?;
    sync_if_suspended(cx, scope, uow).await
}

/// Lets what became of its job happen to a domain: those of the events, in their order, that can; and to its certificate. A
/// domain that another job works on, is active or is deleted does not follow.
///
/// # Errors
/// `CONFLICT` for a domain that is to be active and whose hostname is another platform's by now.
pub(in crate::use_case::registry) async fn follow_job(
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
            action = event.of_event().action;
            // Nobody but an operator declares a domain active by its job.
            next.is_vouched = *event == CustomDomainEvent::Activate;
        }
    }
    next.ssl_status = certificate.unwrap_or(next.ssl_status);
    replace(cx, scope, uow, &seen, next, action).await?;
    Ok(())
}

/// How many unverified domains are listed at the most.
const MAX_UNVERIFIED: u32 = 1000;

/// The domains of a platform, newest first.
///
/// # Errors
/// `INVALID_CURSOR`.
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

/// A domain that is not deleted.
///
/// # Errors
/// `NOT_FOUND`.
pub async fn get(
    scope: &PlatformScope<grant::DomainRead>,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
) -> Result<Stored<CustomDomain>> {
    not_deleted(scope, uow, domain).await
}

/// The domains of all platforms that are neither verified nor given up, oldest first; the first thousand.
///
/// # Errors
/// When the store failed.
pub async fn list_unverified(
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
) -> Result<Vec<Stored<CustomDomain>>> {
    let unverified = CustomDomainQuery::Unverified;
    let domains = scope.records::<CustomDomain>(uow);
    domains.list(&unverified, MAX_UNVERIFIED).await
}

/// A custom domain of the platform that is not deleted.
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

/// Writes a domain that was changed. One that becomes active takes its hostname from then on.
///
/// # Errors
/// `CONFLICT` when it becomes active and the hostname is another platform's by now; `VERSION_CONFLICT`.
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
        take(cx, scope, uow, &next.hostname, Claim::Vouched).await?;
    }
    let stored = audited::replace(cx, scope, uow, seen, next, action).await;
    stored.map_err(|error| match error {
        Error::Store(StoreError::Conflict {
            index: "hostname", ..
        }) => is_custom_domain(),
        error => error,
    })
}

/// Changes a domain. A new job verifies a domain that goes back to `pending`, and serves one that becomes `active`. A domain
/// that becomes `failed` or `deleted` is not served any more. Only a domain that is active after the change takes
/// `verifiedAt`. Only operators may set it, set the status `active`, or say of the certificate what follows a proof.
///
/// # Errors
/// `NOT_FOUND`; `FORBIDDEN` when anybody but operators calls it verified, or says of its certificate what follows that;
/// `INVALID_STATE` for a move that is not in the table, and for an instant of verification of a domain that is not active;
/// `CONFLICT` when it is to be active and its hostname is another platform's; `VERSION_CONFLICT`.
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
        action = event.of_event().action;
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
            return Err(IllegalMove::new(next.status, [CustomDomainStatus::Active]).into());
        }
        next.verified_at = Some(verified_at);
    }
    if let Some(ssl_status) = command.ssl_status
        && ssl_status.follows_proof()
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
