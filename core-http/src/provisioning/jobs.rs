//! Handlers of jobs.

use core_domain::kernel::{JobId, Result};
use core_domain::port::{Stored, UnitOfWork};
use core_domain::provisioning::Job;
use core_domain::use_case::provisioning::{self, JobFilter};

use super::shape::{JobShape, OperatorShape, WhichJobs};
use crate::kernel::{Cx, Input, ListP2, Output, page_request};

pub(super) async fn list(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(), WhichJobs>,
) -> Result<Output<ListP2<JobShape>>> {
    let asked = page_request(input.query.limit.0, input.query.cursor);
    let filter = JobFilter {
        platform_id: input.query.platform_id,
        status: input.query.status,
    };
    let page = provisioning::list(cx, uow, filter, &asked).await?;
    let (next, total) = (page.next, page.total);
    let mut items = Vec::with_capacity(page.items.len());
    for job in page.items {
        items.push(shaped(cx, uow, job).await?);
    }
    let page = core_domain::kernel::Page { items, next, total };
    Ok(Output::new(ListP2::new(page, &asked)))
}

pub(super) async fn show(
    cx: &Cx,
    uow: &mut dyn UnitOfWork,
    input: Input<(JobId,)>,
) -> Result<Output<JobShape>> {
    let (id,) = input.path;
    let job = provisioning::get(cx, uow, &id).await?;
    let version = job.version();
    Ok(Output::new(shaped(cx, uow, job).await?).version(version))
}

async fn shaped(cx: &Cx, uow: &mut dyn UnitOfWork, job: Stored<Job>) -> Result<JobShape> {
    let hold = provisioning::hold_reason(uow, &job).await?;
    let operator = if cx.caller.is_operator() {
        let lease = provisioning::lease_of(cx, uow, &job.id).await?;
        Some(OperatorShape::new(&job, lease.as_deref()))
    } else {
        None
    };
    Ok(JobShape::new(job.into_inner(), hold, operator))
}
