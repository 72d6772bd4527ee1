//! Reading and prolonging leases.

use std::collections::BTreeMap;
use std::time::Duration;

use super::claim::Claimed;
use crate::access::{unaudited, unowned};
use crate::kernel::{JobId, Result};
use crate::port::UnitOfWork;
use crate::provisioning::JobLease;

/// Tells whether the job still runs under the fence it was claimed with. A lease exists exactly while the job runs, with
/// its fence; its row is the smaller one.
///
/// # Errors
/// When the store failed.
pub(super) async fn is_held(uow: &mut dyn UnitOfWork, job: &Claimed) -> Result<bool> {
    let lease = unowned::<JobLease>(uow).find(&job.job_id).await?;
    Ok(lease.is_some_and(|lease| lease.fence == job.fence))
}

/// As [`is_held`] of each of these jobs, by one read.
///
/// # Errors
/// When the store failed.
pub(super) async fn are_held(uow: &mut dyn UnitOfWork, jobs: &[Claimed]) -> Result<Vec<bool>> {
    let ids: Vec<&str> = jobs.iter().map(|job| job.job_id.as_str()).collect();
    let leases = unowned::<JobLease>(uow).get_many(&ids).await?;
    let fences = leases.iter().map(|lease| (&lease.job_id, lease.fence));
    let fences: BTreeMap<&JobId, i64> = fences.collect();
    let is_held = |job: &Claimed| fences.get(&job.job_id) == Some(&job.fence);
    Ok(jobs.iter().map(is_held).collect())
}

/// Prolongs the leases of these jobs by so much from now, all at once, and answers those that are no longer the owner's. Touches no job.
///
/// # Errors
/// When the store failed; nothing was prolonged.
pub(super) async fn heartbeat(
    uow: &mut dyn UnitOfWork,
    owner: &str,
    lasts: Duration,
    held: &[Claimed],
) -> Result<Vec<Claimed>> {
    if held.is_empty() {
        return Ok(Vec::new());
    }
    let now = uow.now().await?;
    let ids: Vec<&str> = held.iter().map(|claimed| claimed.job_id.as_str()).collect();
    let leases = unowned::<JobLease>(uow).get_many(&ids).await?;
    let own = leases.into_iter().filter(|lease| lease.owner == owner);
    let mut own: BTreeMap<JobId, _> = own.map(|lease| (lease.job_id.clone(), lease)).collect();
    let (mut lost, mut prolonged) = (Vec::new(), Vec::new());
    for claimed in held {
        let is_held = own
            .get(&claimed.job_id)
            .is_some_and(|lease| lease.fence == claimed.fence);
        let Some(lease) = own.remove(&claimed.job_id).filter(|_| is_held) else {
            lost.push(claimed.clone());
            continue;
        };
        let mut next = (*lease).clone();
        next.lease_until = now.plus(lasts);
        prolonged.push((lease, next));
    }
    if !prolonged.is_empty() {
        unaudited::replace_many(uow, prolonged).await?;
    }
    Ok(lost)
}
