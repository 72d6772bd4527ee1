//! Looking at jobs.

use crate::kernel::{Context, Error, JobId, Page, PageRequest, Permission, PlatformId, Result};
use crate::port::{Record, Stored, UnitOfWork};
use crate::provisioning::{Actor, Job, JobEvent, JobEventQuery, JobLease, JobQuery, JobStatus};

/// Which jobs to list; every part that is given must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Of this platform. A caller who is no operator sees the jobs of their own platform in any case.
    pub platform_id: Option<PlatformId>,
    /// With this status.
    pub status: Option<JobStatus>,
}

/// A job. One of a foreign platform is "not found", exactly as a missing one. Who queued a job that works for no
/// platform yet (an onboarding) sees it too.
///
/// # Errors
/// `NOT_FOUND`; `FORBIDDEN` without `job:read`.
pub async fn get(cx: &Context, uow: &mut dyn UnitOfWork, job: &JobId) -> Result<Stored<Job>> {
    cx.caller.signed_in()?;
    let job = uow.jobs().get(job.as_str()).await?;
    let job = job.ok_or(Error::NotFound(Job::KIND))?;
    if cx.caller.is_operator() {
        return Ok(job);
    }
    let Some(platform) = &job.platform_id else {
        let own = job.created_by == Actor::caller(cx);
        return own.then_some(job).ok_or(Error::NotFound(Job::KIND));
    };
    match cx.caller.may(Permission::JobRead, platform) {
        Err(Error::NotFound(_)) => Err(Error::NotFound(Job::KIND)),
        refused_or_not => refused_or_not.map(|()| job),
    }
}

/// Jobs, newest first.
///
/// # Errors
/// `NOT_FOUND` when the filter names a foreign platform; `FORBIDDEN` without `job:read`; `INVALID_CURSOR`.
pub async fn list(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    filter: JobFilter,
    page: &PageRequest,
) -> Result<Page<Stored<Job>>> {
    cx.caller.signed_in()?;
    let own = cx.caller.platform_id().cloned();
    let platform_id = match (filter.platform_id, own) {
        (None, _) if cx.caller.is_operator() => None,
        (None, None) => return Ok(Page::empty()),
        (asked, own) => asked.or(own),
    };
    if let Some(platform) = &platform_id {
        cx.caller.may(Permission::JobRead, platform)?;
    }
    let query = JobQuery::Of {
        platform_id,
        status: filter.status,
    };
    Ok(uow.jobs().page(&query, page).await?)
}

/// The history of a job after the entry with the given number (0 for all of it), oldest first.
///
/// # Errors
/// As [`get`].
pub async fn events(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    job: &JobId,
    after: i64,
    limit: u32,
) -> Result<Vec<Stored<JobEvent>>> {
    get(cx, uow, job).await?;
    let query = JobEventQuery::After(job.clone(), after);
    Ok(uow.job_events().list(&query, limit).await?)
}

/// The lease of a job that runs; for operators alone.
///
/// # Errors
/// `FORBIDDEN` for anybody else.
pub async fn lease_of(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    job: &JobId,
) -> Result<Option<Stored<JobLease>>> {
    cx.caller.operator()?;
    Ok(uow.job_leases().get(job.as_str()).await?)
}
