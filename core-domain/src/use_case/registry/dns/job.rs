//! How a DNS record follows the job that has it served.

use crate::access::{PlatformAccess, PlatformWriter, audited};
use crate::kernel::{
    Context, DnsRecordId, Error, JobId, Line, Machine, Result, StoreError, Stored,
};
use crate::port::UnitOfWork;
use crate::registry::{DnsRecord, DnsRecordEvent, DnsRecordStatus, MissingRecord};
use crate::use_case::registry::hostname::{Claim, ensure_not_foreign, has_dns_record};
use crate::use_case::registry::hostname_loss::take;
use crate::use_case::registry::jobs::sync_if_suspended;

/// The record, if this job is to have it served and has not done so yet.
async fn find_pending(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    (record, job): (&DnsRecordId, &JobId),
) -> Result<Option<Stored<DnsRecord>>> {
    let found = scope.records::<DnsRecord>(uow).find(record).await?;
    Ok(found.filter(|record| record.is_pending_for(job)))
}

/// Records which DNS records the job found missing. A platform that lacks none takes the hostname.
///
/// # Errors
/// `CONFLICT` if no proof is needed and another platform is served under the hostname.
pub(in crate::use_case::registry) async fn record_proof(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    own: (&DnsRecordId, &JobId),
    missing: &[MissingRecord],
) -> Result<()> {
    let Some(seen) = find_pending(scope, uow, own).await? else {
        return Ok(());
    };
    if missing.is_empty() {
        let claim = if seen.is_vouched {
            Claim::Vouched
        } else {
            Claim::Proved
        };
        take(cx, scope, uow, &seen.hostname, claim).await?;
    }
    let next = seen.edit().checked(missing, uow.now().await?);
    audited::replace(cx, scope, uow, &seen, next, "dns_record.checked").await?;
    Ok(())
}

/// Records that the hostname leads to the resource.
///
/// # Errors
/// `CONFLICT` if another platform is served under the hostname by now.
pub(in crate::use_case::registry) async fn record_route(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    own: (&DnsRecordId, &JobId),
    route: &str,
) -> Result<()> {
    let Some(seen) = find_pending(scope, uow, own).await? else {
        return Ok(());
    };
    ensure_not_foreign(scope, uow, &seen.hostname).await?;
    let event = DnsRecordEvent::Route;
    let mut next = seen.edit().after(event)?;
    next.cf_route_id = Line::parse(route).ok();
    replace(cx, scope, uow, &seen, next, event.of_event().action).await?;
    sync_if_suspended(cx, scope, uow).await
}

/// Applies the outcome of its job to a record: those of the events, in their order, that are possible. A record that another
/// job works on, is active or is deleted does not follow.
///
/// # Errors
/// `CONFLICT` if it is to be active and another platform is served under the hostname.
pub(in crate::use_case::registry) async fn follow_job(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    (record, job): (&DnsRecordId, &JobId),
    events: &[DnsRecordEvent],
) -> Result<()> {
    let found = scope.records::<DnsRecord>(uow).find(record).await?;
    let follows = |seen: &DnsRecord| {
        let is_open = matches!(
            seen.status,
            DnsRecordStatus::Pending | DnsRecordStatus::Failed
        );
        is_open && seen.job_id.as_ref() == Some(job)
    };
    let Some(seen) = found.filter(|seen| follows(seen)) else {
        return Ok(());
    };
    let (mut next, mut action) = (seen.edit(), "dns_record.updated");
    for event in events {
        if event.next(next.status).is_ok() {
            next = next.after(*event)?;
            action = event.of_event().action;
        }
    }
    if next.status == DnsRecordStatus::Active {
        ensure_not_foreign(scope, uow, &next.hostname).await?;
        // An operator declared the job done.
        next.is_vouched = true;
    }
    replace(cx, scope, uow, &seen, next, action).await
}

async fn replace(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    seen: &Stored<DnsRecord>,
    next: DnsRecord,
    action: &'static str,
) -> Result<()> {
    let stored = audited::replace(cx, scope, uow, seen, next, action).await;
    let stored = stored.map_err(|error| match error {
        Error::Store(StoreError::Conflict {
            index: "hostname", ..
        }) => has_dns_record(),
        error => error,
    });
    stored.map(drop)
}
