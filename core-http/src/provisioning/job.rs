//! Endpoints that read jobs.

use core_domain::access::{JobScope, Requirement};
use core_domain::kernel::{Code, Context, JobId, ListQuery, Result, permission};
use core_domain::port::UnitOfWork;
use core_domain::use_case::provisioning::{self, JobFilter, JobListScope, JobView};
use futures_util::future::BoxFuture;

use crate::kernel::{
    Cx, Endpoint, Input, ListP2, OpenScope, Output, Versioned, WaitQuery, WaitTarget, get,
};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/api/v1/provision/jobs", "listJobs")
            .summary("Lists jobs, newest first.")
            .description(
                "`platformId` and `status` filter the list. Operators see the jobs of all \
                 platforms, other callers those of the platform in `platformId` or of the \
                 platform that they act for.",
            )
            .refuses(&[Code::Forbidden, Code::NotFound])
            .reads(list),
        get("/api/v1/provision/jobs/{jobId}", "getJob")
            .summary("Returns a job with its steps.")
            .description(
                "With `wait`, the response is delayed until the job has ended, for at most the \
                 given number of seconds. The response then has the state of the job at that \
                 time. Operators also see the lease of a running job.",
            )
            .waits(show, wait_target),
    ]
}

type ListJobsInput = Input<(), ListQuery<JobFilter>>;

impl OpenScope<ListJobsInput> for JobListScope {
    const REQUIREMENT: Requirement = Requirement::SignedIn;

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a ListJobsInput,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(provisioning::authorize_list(cx, uow, &input.query.filter))
    }
}

async fn list(
    cx: &Cx,
    scope: JobListScope,
    uow: &mut dyn UnitOfWork,
    input: ListJobsInput,
) -> Result<Output<ListP2<JobView>>> {
    let page = provisioning::list(cx, &scope, uow, &input.query).await?;
    Ok(Output::new(ListP2::new(page, &input.query.page())))
}

async fn show(
    cx: &Cx,
    scope: JobScope<permission::JobRead>,
    uow: &mut dyn UnitOfWork,
    _: Input<(JobId,), WaitQuery>,
) -> Result<Versioned<JobView>> {
    let view = provisioning::get(cx, &scope, uow).await?;
    Ok(Versioned::of(scope.job(), view))
}

fn wait_target(answer: &Versioned<JobView>) -> WaitTarget {
    let job = &answer.body().job;
    if job.status.is_terminal() {
        return WaitTarget::Nothing;
    }
    WaitTarget::JobEvent(job.id.clone())
}
