//! Deleting custom domains. The job that works on one ends when it finds it gone.

use super::rules::not_deleted;
use crate::access::{Batches, Covers, PlatformScope, PlatformWriter, SystemScope, audited};
use crate::kernel::{
    Context, CustomDomainId, DnsRecordId, Machine, PlatformOwned, Result, Stored, grant,
};
use crate::port::UnitOfWork;
use crate::provisioning::ADD_DOMAIN;
use crate::registry::{CustomDomain, CustomDomainEvent, CustomDomainQuery};
use crate::use_case::provisioning::{self, enqueue};
use crate::use_case::registry::jobs::{DomainTarget, RemoveDomain};

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
pub(super) async fn queue_removal(
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
