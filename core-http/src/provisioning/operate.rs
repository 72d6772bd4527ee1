//! Endpoints with which operators control jobs.

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
        operator_row(post("/api/v1/provision/jobs/{jobId}/retry", "retryJob"))
            .summary("Retries a failed job, or runs a waiting job now.")
            .description(
                "A failed job resumes at its first unfinished step, with new attempts and a new \
                 deadline. A queued or waiting job becomes due now. A job that is running, \
                 completed or being undone is refused.",
            )
            .writes(retry),
        operator_row(post("/api/v1/provision/jobs/{jobId}/cancel", "cancelJob"))
            .summary("Cancels a job that has not ended.")
            .description(
                "The job is `FAILED` at once; a worker that runs one of its steps stops at its \
                 next heartbeat. Another job undoes the completed steps, as far as the kind of \
                 the job supports this. The response has the `reason`. Default: `cancelled by \
                 operator`.",
            )
            .writes(cancel),
        operator_row(post(
            "/api/v1/provision/jobs/{jobId}/force-complete",
            "forceCompleteJob",
        ))
        .summary("Marks a job as completed.")
        .description(
            "The job is `COMPLETED` at once, with the outputs that it has. Unfinished steps \
                 are skipped, and the records of the job are updated as after a normal \
                 completion. A job that has completed or is being undone is refused.",
        )
        .writes(force_complete),
    ]
}

/// Adds the properties that all rows in this module have. Jobs change with every step, so `If-Match` lets an operator
/// act on a job only in the state that they have seen.
fn operator_row(row: Row) -> Row {
    row.if_match()
        .refuses(&[Code::NotFound, Code::InvalidState])
}

/// The status of a job after an action of an operator.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct JobStatusView {
    /// The id of the job.
    job_id: JobId,
    /// The status of the job after the action.
    status: JobStatus,
}

/// The response to the cancellation of a job.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CancelledJob {
    /// The id of the job.
    job_id: JobId,
    /// The status of the job after the cancellation.
    status: JobStatus,
    /// The reason for the cancellation.
    reason: Option<String>,
}

fn status_response(job: &Stored<Job>) -> Versioned<JobStatusView> {
    let shown = JobStatusView {
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
) -> Result<Versioned<JobStatusView>> {
    let job = provisioning::retry(cx, &scope, uow, &cx.app.kinds, &input.path.0).await?;
    Ok(status_response(&job))
}

async fn cancel(
    cx: &Cx,
    scope: OperatorScope,
    uow: &mut dyn UnitOfWork,
    input: Input<(JobId,), (), ReasonBody>,
) -> Result<Versioned<CancelledJob>> {
    let (id, reason) = (&input.path.0, input.body.reason.as_ref());
    let job = provisioning::cancel(cx, &scope, uow, &cx.app.kinds, id, reason).await?;
    let shown = CancelledJob {
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
) -> Result<Versioned<JobStatusView>> {
    let id = &input.path.0;
    let job = provisioning::force_complete(cx, &scope, uow, &cx.app.kinds, id).await?;
    Ok(status_response(&job))
}
