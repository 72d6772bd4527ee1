//! How a custom domain follows the job that works on it.

use super::rules::replace;
use crate::access::{PlatformAccess, PlatformWriter};
use crate::kernel::{Context, CustomDomainId, JobId, Machine, Result, Stored};
use crate::port::UnitOfWork;
use crate::registry::{
    CustomDomain, CustomDomainEvent, CustomDomainStatus, MissingRecord, ProviderName, SslStatus,
};
use crate::use_case::registry::hostname::{Claim, ensure_not_foreign};
use crate::use_case::registry::hostname_loss::take;
use crate::use_case::registry::jobs::sync_if_suspended;

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
