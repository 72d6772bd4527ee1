//! Reading jobs.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::hold::list_wide_holds;
use super::lane::holds_on;
use crate::access::{
    Batches, JobScope, OperatorScope, PlatformAccess, PlatformScope, SystemScope, authorize,
    authorize_operator, authorize_signed_in, unowned_records,
};
use crate::kernel::{
    Context, Error, JobId, ListQuery, Page, PlatformId, Record, Result, Stored, Timestamp,
    permission,
};
use crate::port::UnitOfWork;
use crate::provisioning::{
    HoldScope, Job, JobHold, JobLease, JobLeaseQuery, JobQuery, JobStatus, Progress,
};

/// Maximum number of jobs that [`list_of_kind`] returns.
const MAX_JOBS: u32 = 100;

/// A job with its progress. Operators also see its lease.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobView {
    /// The record of the job.
    #[serde(flatten)]
    pub job: Job,
    /// Name of the step to work on next. `null` if all steps are done.
    pub current_step: Option<String>,
    /// The current progress of the job.
    pub progress: Progress,
    /// Why the queued job is held: the reason of the hold, or its source if no reason was given. `null` if no hold
    /// applies or the job is not queued.
    pub hold_reason: Option<String>,
    /// The lease of the job. Only operators receive its fields.
    #[serde(flatten)]
    pub lease: Option<LeaseView>,
}

/// The fields of a job that only operators receive.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaseView {
    /// The id of the worker that runs the job. `null` if the job does not run.
    pub lease_owner: Option<String>,
    /// The time at which the worker's lease expires unless renewed. `null` if the job does not run.
    pub lease_until: Option<Timestamp>,
    /// The fence of the job. It increases whenever the job changes its holder or its status.
    pub fence: i64,
}

/// Filters for a list of jobs. A job must match every given filter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JobFilter {
    /// Returns only jobs of this platform. Default for operators: all platforms. Default for others: the platform they
    /// act for.
    pub platform_id: Option<PlatformId>,
    /// Returns only jobs in this status.
    pub status: Option<JobStatus>,
}

/// The jobs that a caller may list.
#[derive(Clone, Debug)]
pub enum JobListScope {
    /// The jobs of one platform.
    Platform(Box<PlatformScope<permission::JobRead>>),
    /// The jobs of all platforms.
    Installation(OperatorScope),
    /// No jobs: the caller acts for no platform.
    Empty,
}

/// Authorizes the caller to list jobs. Operators may list the jobs of all platforms. Others may list those of one
/// platform: the one in the filter, otherwise the one they act for.
///
/// # Errors
/// - `UNAUTHORIZED` if the caller is not signed in.
/// - `NOT_FOUND` if the platform does not exist or belongs to another tenant.
/// - `FORBIDDEN` if the caller lacks the permission to read jobs.
/// - `PLATFORM_SUSPENDED` if the platform is suspended.
pub async fn authorize_list(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    filter: &JobFilter,
) -> Result<JobListScope> {
    authorize_signed_in(cx, uow).await?;
    let named = filter.platform_id.as_ref();
    if named.is_none() && cx.caller.is_operator() {
        return Ok(JobListScope::Installation(authorize_operator(cx)?));
    }
    match named.or_else(|| cx.caller.platform_id()) {
        Some(platform) => {
            let scope = authorize(cx, uow, platform).await?;
            Ok(JobListScope::Platform(Box::new(scope)))
        }
        None => Ok(JobListScope::Empty),
    }
}

/// Returns the jobs of the scope, newest first.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor is invalid.
pub async fn list(
    cx: &Context,
    scope: &JobListScope,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery<JobFilter>,
) -> Result<Page<JobView>> {
    let platform_id = match scope {
        JobListScope::Platform(scope) => Some(scope.id().clone()),
        JobListScope::Installation(_) => None,
        JobListScope::Empty => return Ok(Page::empty()),
    };
    let jobs = JobQuery::Of {
        platform_id,
        status: query.filter.status,
    };
    let page = unowned_records::<Job>(uow)
        .page(&jobs, &query.uncounted_page())
        .await?;
    let (next, total) = (page.next, page.total);
    let items = views(cx, uow, page.items).await?;
    Ok(Page { items, next, total })
}

/// Returns a job with its progress.
///
/// # Errors
/// Only those of the store.
pub async fn get(
    cx: &Context,
    scope: &JobScope<permission::JobRead>,
    uow: &mut dyn UnitOfWork,
) -> Result<JobView> {
    let mut views = views(cx, uow, vec![scope.job().clone()]).await?;
    views.pop().ok_or(Error::NotFound(Job::KIND))
}

/// Adds progress, holds and leases to jobs. The number of statements does not depend on the number of jobs.
async fn views(
    cx: &Context,
    uow: &mut dyn UnitOfWork,
    jobs: Vec<Stored<Job>>,
) -> Result<Vec<JobView>> {
    let queued = jobs.iter().filter(|job| job.status == JobStatus::Queued);
    let mut lanes: Vec<_> = queued.map(|job| job.lane.clone()).collect();
    lanes.sort_unstable();
    lanes.dedup();
    let mut holds = Vec::new();
    if !lanes.is_empty() {
        let scopes = lanes.into_iter().map(HoldScope::Lane);
        holds = holds_on(uow, scopes.collect()).await?;
        holds.extend(list_wide_holds(uow).await?);
    }
    let leases = if cx.caller.is_operator() {
        Some(leases_of(uow, &jobs).await?)
    } else {
        None
    };
    let view = |job: Stored<Job>| JobView {
        current_step: job.current_step().map(|at| job.steps[at].name.clone()),
        progress: job.progress(),
        hold_reason: hold_reason(&job, &holds),
        lease: leases.as_ref().map(|leases| {
            let lease = leases.get(&job.id);
            LeaseView {
                lease_owner: lease.map(|lease| lease.owner.clone()),
                lease_until: lease.map(|lease| lease.lease_until),
                fence: job.fence,
            }
        }),
        job: job.into_inner(),
    };
    Ok(jobs.into_iter().map(view).collect())
}

/// Returns the reason of the hold that applies to a queued job, or its source if it has no reason.
fn hold_reason(job: &Job, holds: &[Stored<JobHold>]) -> Option<String> {
    if job.status != JobStatus::Queued {
        return None;
    }
    let held = holds.iter().find(|hold| hold.holds(&job.lane, &job.kind))?;
    let source = || held.source.as_str().to_owned();
    Some(held.reason.clone().unwrap_or_else(source))
}

async fn leases_of(
    uow: &mut dyn UnitOfWork,
    jobs: &[Stored<Job>],
) -> Result<BTreeMap<JobId, JobLease>> {
    let running = jobs.iter().filter(|job| job.status == JobStatus::Running);
    let running: Vec<JobId> = running.map(|job| job.id.clone()).collect();
    let limit = u32::try_from(running.len()).unwrap_or(u32::MAX);
    if running.is_empty() {
        return Ok(BTreeMap::new());
    }
    let of_jobs = JobLeaseQuery::OfJobs(running);
    let leases = unowned_records::<JobLease>(uow)
        .list(&of_jobs, limit)
        .await?;
    let leases = leases.into_iter().map(Stored::into_inner);
    Ok(leases.map(|lease| (lease.job_id.clone(), lease)).collect())
}

/// Returns a job without an access check. For use cases that authorize the caller by another record, such as an
/// onboarding or a deployment.
pub(in crate::use_case) async fn find(
    _: SystemScope,
    uow: &mut dyn UnitOfWork,
    job: &JobId,
) -> Result<Option<Stored<Job>>> {
    unowned_records::<Job>(uow).find(job).await
}

/// Maximum number of child jobs that [`find_child`] searches.
const MAX_CHILDREN: u32 = 20;

/// Returns the newest job of this kind that `parent` queued for a platform.
pub(in crate::use_case) async fn find_child(
    _: SystemScope,
    uow: &mut dyn UnitOfWork,
    parent: &JobId,
    platform: &PlatformId,
    kind: &str,
) -> Result<Option<Stored<Job>>> {
    let queued_by = JobQuery::QueuedBy {
        parent: parent.clone(),
        platform_id: platform.clone(),
    };
    let children = unowned_records::<Job>(uow).list(&queued_by, MAX_CHILDREN);
    let mut children = children.await?.into_iter();
    Ok(children.find(|job| job.kind == kind))
}

/// Returns the oldest unfinished job of the platform that is not one of `own`.
pub(in crate::use_case) async fn find_unfinished(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    own: &BTreeSet<JobId>,
) -> Result<Option<JobId>> {
    let mut jobs = Batches::<Job>::of(JobQuery::Unfinished(scope.id().clone()));
    while let Some(batch) = jobs.next(unowned_records(uow)).await? {
        if let Some(other) = batch.iter().find(|job| !own.contains(&job.id)) {
            return Ok(Some(other.id.clone()));
        }
    }
    Ok(None)
}

/// Returns the id of the job and of all jobs that it queued for a platform, directly or by other such jobs.
pub(in crate::use_case) async fn with_descendants(
    _: SystemScope,
    uow: &mut dyn UnitOfWork,
    job: &JobId,
    platform: &PlatformId,
) -> Result<BTreeSet<JobId>> {
    let (mut found, mut to_ask) = (BTreeSet::from([job.clone()]), vec![job.clone()]);
    while let Some(parent) = to_ask.pop() {
        let mut children = Batches::<Job>::of(JobQuery::QueuedBy {
            parent,
            platform_id: platform.clone(),
        });
        while let Some(batch) = children.next(unowned_records(uow)).await? {
            let new = batch.iter().filter(|child| found.insert(child.id.clone()));
            to_ask.extend(new.map(|child| child.id.clone()));
        }
    }
    Ok(found)
}

/// Returns the newest jobs of a kind for a platform, at most [`MAX_JOBS`].
pub(in crate::use_case) async fn list_of_kind(
    _: SystemScope,
    uow: &mut dyn UnitOfWork,
    platform: &PlatformId,
    kind: &str,
) -> Result<Vec<Stored<Job>>> {
    let of_kind = JobQuery::OfKind(platform.clone(), kind.to_owned());
    unowned_records::<Job>(uow).list(&of_kind, MAX_JOBS).await
}

/// Returns whether the job exists and works for the platform.
pub(in crate::use_case) async fn belongs_to(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    job: &JobId,
) -> Result<bool> {
    let job = unowned_records::<Job>(uow).find(job).await?;
    Ok(job.is_some_and(|job| job.platform_id.as_ref() == Some(scope.id())))
}
