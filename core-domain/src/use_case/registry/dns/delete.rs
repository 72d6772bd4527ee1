//! Deleting DNS records.

use serde_json::json;

use super::rules::of_stack;
use crate::access::{Batches, Covers, PlatformScope, PlatformWriter, audited};
use crate::kernel::{
    Code, Context, DnsRecordId, Error, Machine, PlatformOwned, ResourceId, Result, StackId, Stored,
    grant,
};
use crate::port::UnitOfWork;
use crate::registry::{CustomDomain, CustomDomainQuery, DnsRecord, DnsRecordEvent, DnsRecordQuery};
use crate::use_case::provisioning::enqueue;
use crate::use_case::registry::domain;
use crate::use_case::registry::jobs::{DnsTarget, RemoveDnsRecord};

/// Deletes a DNS record of a stack; a job has its hostname not lead to the resource any more.
///
/// # Errors
/// `NOT_FOUND`, also the second time; `CONFLICT` while a custom domain leads to it; `VERSION_CONFLICT`.
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
            message: "Custom domains lead to this DNS record.".to_owned(),
            details: json!({ "domains": domains }),
        });
    }
    soft_delete(cx, scope, uow, &seen).await?;
    let target = DnsTarget::of(scope, dns_record);
    enqueue::<RemoveDnsRecord>(cx, scope, uow, &target).await?;
    Ok(())
}

/// Deletes what leads to a resource that is removed: its DNS records and their custom domains.
pub(in crate::use_case::registry) async fn delete_leading_to(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    resource: &ResourceId,
) -> Result<()> {
    let leading = DnsRecordQuery::LeadingTo(resource.clone());
    let mut records = Batches::<DnsRecord>::of(leading);
    while let Some(batch) = records.next(scope.records(uow)).await? {
        for record in batch {
            domain::delete_on(cx, scope, uow, &record.id).await?;
            soft_delete(cx, scope, uow, &record).await?;
            // Its route goes with the resource, which has another name of its own by now if somebody changed that.
            if record.cf_route_id.is_some() {
                let target = DnsTarget::of(scope, &record.id);
                enqueue::<RemoveDnsRecord>(cx, scope, uow, &target).await?;
            }
        }
    }
    Ok(())
}

async fn soft_delete(
    cx: &Context,
    scope: &impl Covers<PlatformOwned>,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<DnsRecord>,
) -> Result<()> {
    let event = DnsRecordEvent::Delete;
    let next = seen.edit().after(event)?;
    audited::replace(cx, scope, uow, seen, next, event.of_event().action).await?;
    Ok(())
}
