//! The loss of a hostname. A platform loses a hostname when another platform proves it, or when its own proof disappears. Its
//! entry fails, and a job removes the hostname at the provider.

use super::hostname::{Claim, has_dns_record, is_custom_domain};
use super::jobs::{DnsTarget, DomainTarget, RemoveDnsRecord, RemoveDomain};
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

/// Gives a hostname to a platform. Other platforms lose it if their entries are active. If this platform proved the hostname,
/// other platforms that proved it before lose it too.
///
/// # Errors
/// `CONFLICT` for a claim without proof while another platform that is not deleted is served under the hostname.
pub(super) async fn take(
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
                && ends(claim, is_active, domain.is_proved())
                && let Some(loser) =
                    loser(uow, &domain.platform_id, claim, is_custom_domain).await?
            {
                lose_domain(cx, &loser, uow, &domain).await?;
            }
        }
    }
    let mut records = Batches::<DnsRecord>::of(DnsRecordQuery::Named(hostname.clone()));
    while let Some(batch) = records.next(system.records(uow)).await? {
        for record in batch {
            let is_active = record.status == DnsRecordStatus::Active;
            if record.platform_id != *scope.id()
                && ends(claim, is_active, record.is_proved())
                && let Some(loser) = loser(uow, &record.platform_id, claim, has_dns_record).await?
            {
                lose_record(cx, &loser, uow, &record).await?;
            }
        }
    }
    Ok(())
}

/// Tells whether a claim ends an entry of another platform. A claim without proof ends active entries alone; a proved entry
/// conflicts with it later, when it would become active.
fn ends(claim: Claim, is_active: bool, is_proved: bool) -> bool {
    is_active || claim == Claim::Proved && is_proved
}

/// Returns the platform that loses a hostname, or the refusal of a claim without proof.
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
pub(super) async fn lose_domain(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<CustomDomain>,
) -> Result<()> {
    let random = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let next = seen.edit().lost(&random, uow.now().await?)?;
    let action = CustomDomainEvent::Fail.of_event().action;
    audited::replace(&cx.consequence(), scope, uow, seen, next, action).await?;
    let target = DomainTarget::of(scope, &seen.id);
    enqueue::<RemoveDomain>(cx, scope, uow, &target).await?;
    Ok(())
}

/// Fails a DNS record and queues the job that removes its route at the provider.
pub(super) async fn lose_record(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<DnsRecord>,
) -> Result<()> {
    let random = secret_token(cx.entropy.as_ref(), TOKEN_LENGTH);
    let next = seen.edit().lost(&random)?;
    let action = DnsRecordEvent::Fail.of_event().action;
    audited::replace(&cx.consequence(), scope, uow, seen, next, action).await?;
    let target = DnsTarget::of(scope, &seen.id);
    enqueue::<RemoveDnsRecord>(cx, scope, uow, &target).await?;
    Ok(())
}
