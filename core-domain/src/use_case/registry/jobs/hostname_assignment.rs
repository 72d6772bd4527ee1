//! Assigns hostnames to platforms, and queues the jobs that stop serving them for the platforms that lose them.

use super::custom_domain_removal::{DomainTarget, RemoveDomain};
use super::dns_record_removal::{DnsTarget, RemoveDnsRecord};
use crate::access::{Batches, PlatformAccess, PlatformWriter, SystemScope, audited};
use crate::kernel::{
    Context, Error, Machine, PlatformId, Result, Stored, TOKEN_LENGTH, secret_token,
};
use crate::port::UnitOfWork;
use crate::registry::{
    CustomDomain, CustomDomainEvent, CustomDomainQuery, CustomDomainStatus, DnsRecord,
    DnsRecordEvent, DnsRecordQuery, DnsRecordStatus, Hostname, PlatformStatus,
};
use crate::use_case::provisioning::enqueue;
use crate::use_case::registry::hostname::{
    Claim, custom_domain_exists_error, dns_record_exists_error,
};

/// Assigns a hostname to a platform. Other platforms lose it if their records are active. If this platform proved the
/// hostname, other platforms that proved it before lose it too.
///
/// # Errors
/// `CONFLICT` if the claim has no proof and another platform that is not deleted is served under the hostname.
pub(super) async fn assign(
    cx: &Context,
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    hostname: &Hostname,
    claim: Claim,
) -> Result<()> {
    let system = SystemScope::new();
    let mut domains = Batches::<CustomDomain>::of(CustomDomainQuery::Named(hostname.clone()));
    while let Some(batch) = domains.next(system.records(uow)).await? {
        for domain in batch {
            let is_active = domain.status == CustomDomainStatus::Active;
            if domain.platform_id != *scope.id()
                && ends_other_record(claim, is_active, domain.is_proved())
                && let Some(loser) =
                    loser(uow, &domain.platform_id, claim, custom_domain_exists_error).await?
            {
                fail_domain(cx, &loser, uow, &domain).await?;
            }
        }
    }
    let mut records = Batches::<DnsRecord>::of(DnsRecordQuery::Named(hostname.clone()));
    while let Some(batch) = records.next(system.records(uow)).await? {
        for record in batch {
            let is_active = record.status == DnsRecordStatus::Active;
            if record.platform_id != *scope.id()
                && ends_other_record(claim, is_active, record.is_proved())
                && let Some(loser) =
                    loser(uow, &record.platform_id, claim, dns_record_exists_error).await?
            {
                fail_record(cx, &loser, uow, &record).await?;
            }
        }
    }
    Ok(())
}

/// Returns whether a claim ends a record of another platform. A claim without proof ends only active records. A proved
/// record that is not active conflicts with the claim later, when it becomes active.
fn ends_other_record(claim: Claim, is_active: bool, is_proved: bool) -> bool {
    is_active || claim == Claim::Proved && is_proved
}

/// Returns the platform that loses a hostname; `None` if it no longer exists. Returns the error `refusal` for a claim
/// without proof if the platform is not deleted.
async fn loser(
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    claim: Claim,
    refusal: fn() -> Error,
) -> Result<Option<PlatformWriter>> {
    let Some(loser) = SystemScope::new().platform(uow, platform).await? else {
        return Ok(None);
    };
    if claim == Claim::Vouched && loser.platform().status != PlatformStatus::Deleted {
        return Err(refusal());
    }
    Ok(Some(loser))
}

/// Fails a custom domain and queues the job that removes its hostname at the provider.
pub(in crate::use_case::registry) async fn fail_domain(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<CustomDomain>,
) -> Result<()> {
    let random = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let next = seen.edit().after_loss(&random, uow.now().await?)?;
    let action = CustomDomainEvent::Fail.transition().action;
    audited::replace(&cx.without_conditions(), scope, uow, seen, next, action).await?;
    let target = DomainTarget::of(scope, &seen.id);
    enqueue::<RemoveDomain>(cx, scope, uow, &target).await?;
    Ok(())
}

/// Fails a DNS record and queues the job that removes its route at the provider.
pub(in crate::use_case::registry) async fn fail_record(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<DnsRecord>,
) -> Result<()> {
    let random = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let next = seen.edit().after_loss(&random)?;
    let action = DnsRecordEvent::Fail.transition().action;
    audited::replace(&cx.without_conditions(), scope, uow, seen, next, action).await?;
    let target = DnsTarget::of(scope, &seen.id);
    enqueue::<RemoveDnsRecord>(cx, scope, uow, &target).await?;
    Ok(())
}
