//! Handlers of jobs.

use core_domain::kernel::{JobId, Result};
use core_domain::port::{Stored, UnitOfWork};
use core_domain::provisioning::{Job, JobStatus};
use core_domain::use_case::provisioning::{self, JobFilter};
use core_domain::use_case::registry;

use super::shape::{JobShape, OperatorShape, WhichJobs};
use crate::kernel::{Cx, HowLong, Input, ListP2, Output, hold, page_request};

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
    let page = registry::list_jobs(cx, uow, filter, &asked).await?;
    let (next, total) = (page.next, page.total);
    let mut items = Vec::with_capacity(page.items.len());
    for job in page.items {
        items.push(shaped(cx, uow, job).await?);
    }
    let page = core_domain::kernel::Page { items, next, total };
    Ok(Output::new(ListP2::new(page, &asked)))
}

pub(super) async fn show(cx: &Cx, input: Input<(JobId,), HowLong>) -> Result<Output<JobShape>> {
    let (id,) = &input.path;
    let (version, shape) = hold(
        cx.app.store.as_ref(),
        input.query.wait,
        |uow, _| {
            Box::pin(async move {
                let job = registry::find_job(cx, uow, id).await?;
                let (version, shape) = (job.version(), shaped(cx, uow, job).await?);
                Ok((version, shape))
            })
        },
        |(_, shape)| shape.has_ended(),
    )
    .await?;
    Ok(Output::new(shape).version(version))
}

async fn shaped(cx: &Cx, uow: &mut dyn UnitOfWork, job: Stored<Job>) -> Result<JobShape> {
    let hold = provisioning::hold_reason(uow, &job).await?;
    let operator = if cx.caller.is_operator() {
        let lease = match job.status {
            JobStatus::Running => provisioning::lease_of(cx, uow, &job.id).await?,
            _ => None,
        };
        Some(OperatorShape::new(&job, lease.as_deref()))
    } else {
        None
    };
    Ok(JobShape::new(job.into_inner(), hold, operator))
}
