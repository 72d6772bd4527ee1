//! Scopes on one job.

use std::marker::PhantomData;

use super::platform::authorize;
use super::records::covers_unowned;
use super::records::unowned;
use crate::kernel::{Context, Error, Grant, JobId, Record, Result, Stored};
use crate::port::UnitOfWork;
use crate::provisioning::{Actor, Job};

/// A job that the caller was let in to do `G` on. Only [`authorize_job`] makes one.
#[derive(Clone, Debug)]
pub struct JobScope<G> {
    job: Stored<Job>,
    grant: PhantomData<fn() -> G>,
}

impl<G> JobScope<G> {
    /// The job, as it was when the scope was opened.
    #[must_use]
    pub const fn job(&self) -> &Stored<Job> {
        &self.job
    }
}

covers_unowned! { JobScope<G>, for G; }

/// Lets the caller in to a job, by the platform it works for. Who queued a job that works for no platform yet (an
/// onboarding) is let in too. A foreign job is "not found", exactly as a missing one.
///
/// # Errors
/// `UNAUTHORIZED`, `NOT_FOUND`, `FORBIDDEN`, `PLATFORM_SUSPENDED`.
pub async fn authorize_job<G: Grant>(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    job: &JobId,
) -> Result<JobScope<G>> {
    if cx.caller.is_anonymous() {
        return Err(Error::Unauthorized);
    }
    let job = unowned::<Job>(uow).get(job).await?;
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
        grant: PhantomData,
    })
}
