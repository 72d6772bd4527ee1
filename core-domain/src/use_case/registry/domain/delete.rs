//! Deleting custom domains. The job that verifies one ends when it finds it gone.

use super::rules::not_deleted;
use crate::access::{Batches, Covers, PlatformScope, PlatformWriter, audited};
use crate::kernel::{
    Context, CustomDomainId, DnsRecordId, Machine, PlatformOwned, Result, Stored, grant,
};
use crate::port::UnitOfWork;
use crate::registry::{CustomDomain, CustomDomainEvent, CustomDomainQuery};

/// Deletes a domain; its hostname is free again.
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
    soft_delete(cx, scope, uow, &seen).await
}

/// Deletes the domains on a DNS record.
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
