//! Jobs.

use core_domain::access::{JobScope, Requirement};
use core_domain::kernel::{Code, Context, JobId, ListQuery, Result, grant};
use core_domain::port::UnitOfWork;
use core_domain::use_case::provisioning::{self, JobFilter, JobListScope, JobView};
use futures_util::future::BoxFuture;

use crate::kernel::{Cx, Endpoint, Input, ListP2, OpenScope, Output, Versioned, WaitQuery, get};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        get("/api/v1/provision/jobs", "listJobs")
            .summary("Lists jobs, newest first.")
            .refuses(&[Code::Forbidden, Code::NotFound])
            .reads(list),
        get("/api/v1/provision/jobs/{jobId}", "getJob")
            .summary("Shows a job with its steps; with `wait` once it has ended.")
            .waits(show, has_ended),
    ]
}

type Listed = Input<(), ListQuery<JobFilter>>;

impl OpenScope<Listed> for JobListScope {
    const REQUIREMENT: Requirement = Requirement::SignedIn;

    fn open<'a>(
        cx: &'a Context,
        uow: &'a mut dyn UnitOfWork,
        input: &'a Listed,
    ) -> BoxFuture<'a, Result<Self>> {
        Box::pin(provisioning::authorize_list(cx, uow, &input.query.filter))
    }
}

async fn list(
    cx: &Cx,
    scope: JobListScope,
    uow: &mut dyn UnitOfWork,
    input: Listed,
) -> Result<Output<ListP2<JobView>>> {
    let page = provisioning::list(cx, &scope, uow, &input.query).await?;
    Ok(Output::new(ListP2::new(page, &input.query.page())))
}

async fn show(
    cx: &Cx,
    scope: JobScope<grant::JobRead>,
    uow: &mut dyn UnitOfWork,
    _: Input<(JobId,), WaitQuery>,
) -> Result<Versioned<JobView>> {
    let view = provisioning::get(cx, &scope, uow).await?;
    Ok(Versioned::of(scope.job(), view))
}

fn has_ended(answer: &Versioned<JobView>) -> bool {
    answer.shown().job.status.is_terminal()
}
