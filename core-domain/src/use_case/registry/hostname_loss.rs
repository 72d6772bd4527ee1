//! How a platform loses a hostname: another one has proved it, or its own proof is gone. Its entry fails, and a job has the
//! provider serve the hostname for it no longer.

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

/// Takes a hostname for a platform that is to be served under it. Other platforms lose it: by a proof, those that proved it
/// before, whether or not they are served yet.
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

/// Whether a claim is about an entry of another platform. One that is proved but not active yet meets a claim without proof
/// when it is to become active.
fn ends(claim: Claim, is_active: bool, is_proved: bool) -> bool {
    is_active || claim == Claim::Proved && is_proved
}

/// The platform from which a hostname can be taken.
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

/// Ends a custom domain of a platform, and queues the job that has it served no longer.
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

/// Ends a DNS record of a platform, and queues the job that has its hostname lead to its resource no longer.
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
