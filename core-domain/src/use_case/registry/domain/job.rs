//! How a custom domain follows the job that verifies it.

use super::rules::replace;
use crate::access::{PlatformAccess, PlatformWriter};
use crate::kernel::{Context, CustomDomainId, JobId, Machine, Result, Stored};
use crate::port::UnitOfWork;
use crate::registry::{CustomDomain, CustomDomainEvent, CustomDomainStatus, MissingRecord};

/// The domain, if it is to be verified, and by this job.
pub(in crate::use_case::registry) async fn find_verified_by(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
    job: &JobId,
) -> Result<Option<Stored<CustomDomain>>> {
    let found = scope.records::<CustomDomain>(uow).find(domain).await?;
    Ok(found.filter(|domain| domain.is_verified_by(job)))
}

/// Keeps which DNS records the job found missing; a domain that lacks none becomes active.
///
/// # Errors
/// `CONFLICT` for a domain that lacks none and whose hostname is another platform's by now, which ends its job.
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

/// Lets what became of its job happen to a domain: those of the events, in their order, that can. A domain that another job
/// verifies, is active or is deleted does not follow.
///
/// # Errors
/// `CONFLICT` for a domain that is to be active and whose hostname is another platform's by now.
pub(in crate::use_case::registry) async fn follow_job(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    domain: &CustomDomainId,
    job: &JobId,
    events: &[CustomDomainEvent],
) -> Result<()> {
    let Some(seen) = scope.records::<CustomDomain>(uow).find(domain).await? else {
        return Ok(());
    };
    if seen.job_id != *job || seen.status == CustomDomainStatus::Active {
        return Ok(());
    }
    let now = uow.now().await?;
    let (mut next, mut action) = (seen.edit(), "domain.updated");
    for event in events {
        if event.next(next.status).is_ok() {
            next = next.after(*event, now)?;
            action = event.of_event().action;
        }
    }
    replace(cx, scope, uow, &seen, next, action).await?;
    Ok(())
}
