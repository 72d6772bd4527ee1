//! Builds. Jobs create them; external build systems report their results.

use crate::access::{PlatformAccess, PlatformScope, PlatformWriter, audited};
use crate::kernel::{
    BuildId, Context, Environment, Error, JobId, ListQuery, Page, Record, Result, Stored,
    permission,
};
use crate::port::UnitOfWork;
use crate::registry::{Build, BuildOutcome, BuildQuery, BuildStatus, BuildTrigger, UpdateBuild};

type Reads = PlatformScope<permission::BuildRead>;

/// Lists the builds of a platform, newest first.
///
/// # Errors
/// `INVALID_CURSOR` if the cursor does not belong to this list.
pub async fn list(
    scope: &Reads,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery,
) -> Result<Page<Stored<Build>>> {
    let builds = scope.records::<Build>(uow);
    builds.page(&BuildQuery::All, &query.page()).await
}

/// Returns the newest build in an environment.
///
/// # Errors
/// `NOT_FOUND` if the environment has no build.
pub async fn latest(
    scope: &Reads,
    uow: &mut dyn UnitOfWork,
    environment: Environment,
) -> Result<Stored<Build>> {
    let newest = scope.records::<Build>(uow);
    let newest = newest.first(&BuildQuery::In(environment)).await?;
    newest.ok_or(Error::NotFound(Build::KIND))
}

/// Updates a build with the result that a build system reports.
///
/// # Errors
/// `NOT_FOUND` if the build does not exist; `VERSION_CONFLICT` if `If-Match` does not match.
pub async fn update(
    cx: &Context,
    scope: &PlatformScope<permission::BuildWrite>,
    uow: &mut dyn UnitOfWork,
    build: &BuildId,
    command: UpdateBuild,
) -> Result<Stored<Build>> {
    let seen = scope.records::<Build>(uow).get(build).await?;
    let next = seen.edit().apply_update(command, uow.now().await?);
    audited::replace(cx, scope, uow, &seen, next, "build.updated").await
}

/// Creates the build record of a job, with status `building`.
pub(in crate::use_case) async fn begin(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    job: &JobId,
    environment: Environment,
    triggered_by: BuildTrigger,
) -> Result<()> {
    let now = uow.now().await?;
    let build = Build {
        id: BuildId::generate(now, cx.entropy.as_ref()),
        platform_id: scope.id().clone(),
        environment,
        repo_name: scope.platform().repo_name.clone(),
        last_commit_sha: None,
        cf_deployment_id: None,
        build_url: None,
        build_status: BuildStatus::Building,
        triggered_by,
        triggered_at: now,
        completed_at: None,
        updated_at: now,
        created_at: now,
        job_id: Some(job.clone()),
    };
    audited::insert(cx, scope, uow, build, "build.created").await?;
    Ok(())
}

/// Records the result of a job's build. Does nothing if the job has no build or its build has already succeeded.
pub(in crate::use_case) async fn end(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    job: &JobId,
    end: BuildOutcome,
) -> Result<()> {
    let Some(seen) = of_job(scope, uow, job).await? else {
        return Ok(());
    };
    let next = seen.edit().with_outcome(end, uow.now().await?);
    audited::replace(cx, scope, uow, &seen, next, "build.updated").await?;
    Ok(())
}

/// Sets a job's failed build back to `building` when the job is resumed. Does nothing for other builds.
pub(in crate::use_case) async fn resume(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    job: &JobId,
) -> Result<()> {
    let seen = of_job(scope, uow, job).await?;
    let Some(seen) = seen.filter(|build| build.build_status == BuildStatus::Failed) else {
        return Ok(());
    };
    let now = uow.now().await?;
    let next = seen.edit().with_status(BuildStatus::Building, now);
    audited::replace(cx, scope, uow, &seen, next, "build.updated").await?;
    Ok(())
}

/// Returns the build of a job.
async fn of_job(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    job: &JobId,
) -> Result<Option<Stored<Build>>> {
    let of_job = BuildQuery::OfJob(job.clone());
    scope.records::<Build>(uow).first(&of_job).await
}
