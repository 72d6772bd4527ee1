//! Having custom domains served.

use super::create::insert;
use super::rules::replace;
use crate::access::{PlatformScope, PlatformWriter};
use crate::kernel::{Context, CustomDomainId, Machine, Result, Stored, grant};
use crate::port::UnitOfWork;
use crate::provisioning::Job;
use crate::registry::{
    AddCustomDomain, CreateCustomDomain, CustomDomain, CustomDomainEvent, CustomDomainQuery,
    CustomDomainStatus,
};
use crate::use_case::provisioning::enqueue;
use crate::use_case::registry::dns;
use crate::use_case::registry::hostname::is_custom_domain;
use crate::use_case::registry::jobs::{AddDomain, DomainTarget};

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
    let record = dns::not_deleted(scope, uow, &wanted.target_dns_record_id).await?;
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
