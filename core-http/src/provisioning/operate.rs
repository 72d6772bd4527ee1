//! What operators do to jobs.

use core_domain::access::OperatorScope;
use core_domain::kernel::{Code, JobId, Result, Stored};
use core_domain::port::UnitOfWork;
use core_domain::provisioning::{Job, JobStatus};
use core_domain::use_case::provisioning;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Cx, Endpoint, Input, ReasonBody, Row, Versioned, post};

pub(super) fn rows() -> Vec<Endpoint> {
    vec![
        operates(post("/api/v1/provision/jobs/{jobId}/retry", "retryJob"))
            .summary("Lets a failed job go on at its first unfinished step, and a queued or waiting one run now.")
            .writes(retry),
        operates(post("/api/v1/provision/jobs/{jobId}/cancel", "cancelJob"))
            .summary("Stops a job that has not ended; it is FAILED at once.")
            .writes(cancel),
        operates(post("/api/v1/provision/jobs/{jobId}/force-complete", "forceCompleteJob"))
            .summary("Declares a job done, with the outputs it has.")
            .writes(force_complete),
    ]
}

/// A job moves with every step; who moves it only as it was seen says so with `If-Match`.
fn operates(row: Row) -> Row {
    row.if_match()
        .refuses(&[Code::NotFound, Code::InvalidState])
}

/// Where a job stands now.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Operated {
    job_id: JobId,
    status: JobStatus,
}

/// A job that was stopped.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Cancelled {
    job_id: JobId,
    status: JobStatus,
    /// Why, in the operator's words.
    reason: Option<String>,
}

fn operated(job: &Stored<Job>) -> Versioned<Operated> {
    let shown = Operated {
        job_id: job.id.clone(),
        status: job.status,
    };
    Versioned::of(job, shown)
}

async fn retry(
    cx: &Cx,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(JobId,)>,
) -> Result<Versioned<Operated>> {
    let job = provisioning::retry(cx, &scope, uow, &cx.app.kinds, &input.path.0).await?;
    Ok(operated(&job))
}

async fn cancel(
    cx: &Cx,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(JobId,), (), ReasonBody>,
) -> Result<Versioned<Cancelled>> {
    let (id, reason) = (&input.path.0, input.body.reason.as_ref());
    let job = provisioning::cancel(cx, &scope, uow, &cx.app.kinds, id, reason).await?;
    let shown = Cancelled {
        job_id: job.id.clone(),
        status: job.status,
        reason: job.reason.clone(),
    };
    Ok(Versioned::of(&job, shown))
}

async fn force_complete(
    cx: &Cx,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(JobId,)>,
) -> Result<Versioned<Operated>> {
    let id = &input.path.0;
    let job = provisioning::force_complete(cx, &scope, uow, &cx.app.kinds, id).await?;
    Ok(operated(&job))
}
