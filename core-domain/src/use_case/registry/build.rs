//! Builds. Jobs make them; whoever builds elsewhere says what became of them.

use crate::access::{PlatformAccess, PlatformScope, PlatformWriter, audited};
use crate::kernel::{
    BuildId, Context, Environment, Error, JobId, ListQuery, Page, Record, Result, Stored, grant,
};
use crate::port::UnitOfWork;
use crate::registry::{Build, BuildEnd, BuildQuery, BuildStatus, BuildTrigger, UpdateBuild};

type Reads = PlatformScope<grant::BuildRead>;

/// The builds of a platform, newest first.
///
/// # Errors
/// `INVALID_CURSOR`.
pub async fn list(
    scope: &Reads,
    uow: &mut dyn UnitOfWork,
    query: &ListQuery,
) -> Result<Page<Stored<Build>>> {
    let builds = scope.records::<Build>(uow);
    builds.page(&BuildQuery::All, &query.page()).await
}

/// The newest build in an environment.
///
/// # Errors
/// `NOT_FOUND` when there is none.
pub async fn latest(
    scope: &Reads,
    uow: &mut dyn UnitOfWork,
    environment: Environment,
) -> Result<Stored<Build>> {
    let newest = scope.records::<Build>(uow);
    let newest = newest.first(&BuildQuery::In(environment)).await?;
    newest.ok_or(Error::NotFound(Build::KIND))
}

/// Notes what became of a build.
///
/// # Errors
/// `NOT_FOUND`; `VERSION_CONFLICT`.
pub async fn update(
    cx: &Context,
    scope: &PlatformScope<grant::BuildWrite>,
    uow: &mut dyn UnitOfWork,
    build: &BuildId,
    command: UpdateBuild,
) -> Result<Stored<Build>> {
    let seen = scope.records::<Build>(uow).get(build).await?;
    let next = seen.edit().updated(command, uow.now().await?);
    audited::replace(cx, scope, uow, &seen, next, "build.updated").await
}

/// Enters the build that a job makes.
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

/// Ends the build of a job, unless it is done.
pub(in crate::use_case) async fn end(
    cx: &Context,
    scope: &PlatformWriter,
    uow: &mut dyn UnitOfWork,
    job: &JobId,
    end: BuildEnd,
) -> Result<()> {
    let Some(seen) = of_job(scope, uow, job).await? else {
        return Ok(());
    };
    let next = seen.edit().ended(end, uow.now().await?);
    audited::replace(cx, scope, uow, &seen, next, "build.updated").await?;
    Ok(())
}

/// The job of a failed build goes on.
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

async fn of_job(
    scope: &PlatformAccess,
    uow: &mut dyn UnitOfWork,
    job: &JobId,
) -> Result<Option<Stored<Build>>> {
    let of_job = BuildQuery::OfJob(job.clone());
    scope.records::<Build>(uow).first(&of_job).await
}
