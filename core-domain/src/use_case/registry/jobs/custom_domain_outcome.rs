//! Writes the results of `domain.add` to custom domains.

use super::custom_domain_removal::RecordedHostname;
use super::hostname_assignment::assign;
use super::sync_hostnames::sync_if_suspended;
use crate::access::{PlatformAccess, PlatformWriter, audited};
use crate::kernel::{Context, CustomDomainId, Error, JobId, Machine, Result, StoreError, Stored};
use crate::port::UnitOfWork;
use crate::registry::{
    CustomDomain, CustomDomainEvent, CustomDomainStatus, MissingRecord, ProviderName, SslStatus,
};
use crate::use_case::registry::hostname::{
    Claim, custom_domain_exists_error, ensure_not_served_elsewhere,
};

/// Records which DNS records are missing, as found by the domain's job.
pub(super) async fn record_check(
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
    replace_domain(cx, scope, uow, &seen, next, action).await?;
    Ok(())
}

/// Records that the domain's job found all DNS records. The platform takes the hostname from other platforms. The
/// domain becomes active later, when its certificate is in use.
pub(super) async fn record_proof(
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
pub(super) async fn record_earlier_proof(
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
    replace_domain(cx, scope, uow, seen, next, action).await?;
    Ok(())
}

/// Records the state of a domain and its certificate at the provider. With `activates`, a domain that is not active
/// becomes active.
///
/// # Errors
/// `CONFLICT` if the domain would become active and another platform now has the hostname.
pub(super) async fn record_served(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
    job: &JobId,
    hostname: RecordedHostname<'_>,
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
    next.cf_hostname_id = ProviderName::parse(hostname.cf_hostname_id).ok();
    next.ssl_status = hostname.ssl_status;
    replace_domain(cx, scope, uow, &seen, next, action).await?;
    sync_if_suspended(cx, scope, uow).await
}

/// Applies the outcome of its job to a domain: the possible ones of `events`, in their order, and the status of the
/// certificate. Does nothing if the domain has another job, is active or is deleted.
///
/// # Errors
/// `CONFLICT` if the domain would become active and another platform now has the hostname.
pub(super) async fn apply_job_outcome(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
    job: &JobId,
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
    replace_domain(cx, scope, uow, &seen, next, action).await?;
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

/// Stores a changed domain. A domain that becomes active takes its hostname.
///
/// # Errors
/// `CONFLICT` if the domain becomes active and another platform now has the hostname; `VERSION_CONFLICT` if `If-Match`
/// does not match.
pub(in crate::use_case::registry) async fn replace_domain(
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
        }) => custom_domain_exists_error(),
        error => error,
    })
}
