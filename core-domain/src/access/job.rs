//! Scopes on one job.

use std::marker::PhantomData;

use super::platform::authorize;
use super::records::covers_unowned;
use super::records::unowned_records;
use crate::kernel::{Context, Error, JobId, PermissionType, Record, Result, Stored};
use crate::port::UnitOfWork;
use crate::provisioning::{Actor, Job};

/// A job on which the caller is authorized to do `G`. Only [`authorize_job`] creates one.
#[derive(Clone, Debug)]
pub struct JobScope<G> {
    job: Stored<Job>,
    permission: PhantomData<fn() -> G>,
}

impl<G> JobScope<G> {
    /// The job, as read when the scope was created.
    #[must_use]
    pub const fn job(&self) -> &Stored<Job> {
        &self.job
    }
}

covers_unowned! { JobScope<G>, for G; }

/// Authorizes the caller to do `G` on a job, by their permissions on the job's platform. A job without a platform yet
/// (an onboarding) is open to the caller who queued it. A job of another tenant is reported as missing.
///
/// # Errors
/// - `UNAUTHORIZED` if the caller is anonymous.
/// - `NOT_FOUND` if the job is missing or out of the caller's reach.
/// - `FORBIDDEN` if the caller lacks `G` on the job's platform.
/// - `PLATFORM_SUSPENDED` if the job's platform is suspended.
/// - `INVALID_STATE` if `G` writes and the job's platform is deleted.
pub async fn authorize_job<G: PermissionType>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    job: &JobId,
) -> Result<JobScope<G>> {
    if cx.caller.is_anonymous() {
        return Err(Error::Unauthorized);
    }
    let job = unowned_records::<Job>(uow).get(job).await?;
    if !cx.caller.is_operator() {
        match &job.platform_id {
            Some(platform) => {
                let reached = authorize::<G>(cx, uow, platform).await;
                reached.map_err(|error| match error {
                    Error::NotFound(_) => Error::NotFound(Job::KIND),
                    refused => refused,
                })?;
            }
            None if job.created_by == Actor::caller(cx) => {}
            None => return Err(Error::NotFound(Job::KIND)),
        }
    }
    Ok(JobScope {
        job,
        permission: PhantomData,
    })
}
