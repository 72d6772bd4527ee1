//! Looking at jobs, as far as it takes knowing whose the platforms are.

use super::access::reach;
use crate::kernel::{Context, Error, JobId, Page, PageRequest, Permission, Result};
use crate::port::{Record, Stored, UnitOfWork};
use crate::provisioning::Job;
use crate::use_case::provisioning::{self, JobFilter};

/// A job: of the platform the caller acts for, or of another one of their organization. Any other is "not found",
/// exactly as a missing one.
///
/// # Errors
/// `UNAUTHORIZED`; `NOT_FOUND`; `FORBIDDEN` without `job:read`.
pub async fn find_job(cx: &Context, uow: &mut dyn UnitOfWork, job: &JobId) -> Result<Stored<Job>> {
    match provisioning::get(cx, uow, job).await {
        Err(Error::NotFound(_)) => of_organization(cx, uow, job).await,
        decided => decided,
    }
}

async fn of_organization(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    job: &JobId,
) -> Result<Stored<Job>> {
    let missing = Error::NotFound(Job::KIND);
    let system = Context::system(cx.entropy.clone());
    let job = provisioning::get(&system, uow, job).await?;
    let Some(platform) = &job.platform_id else {
        return Err(missing);
    };
    match reach(cx, uow, Permission::JobRead, platform).await {
        Err(Error::NotFound(_)) => Err(missing),
        decided => decided.map(|_| job),
    }
}

/// Jobs, newest first. As [`provisioning::list`], and those of any platform of the caller's organization by name.
///
/// # Errors
/// As [`provisioning::list`].
pub async fn list_jobs(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    filter: JobFilter,
    page: &PageRequest,
) -> Result<Page<Stored<Job>>> {
    let named = filter.platform_id.clone();
    match (
        provisioning::list(cx, uow, filter.clone(), page).await,
        named,
    ) {
        (Err(Error::NotFound(_)), Some(platform)) => {
            reach(cx, uow, Permission::JobRead, &platform).await?;
            let system = Context::system(cx.entropy.clone());
            provisioning::list(&system, uow, filter, page).await
        }
        (decided, _) => decided,
    }
}
