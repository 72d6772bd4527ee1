//! The response of every endpoint that queues a job, and its support for `dryRun=true`.
//!
//! A row needs three things. Its handler takes [`DryRunQuery`], runs its use case, and ends with `queued(uow,
//! input.query, &job).await`. The row has `.success(SUCCESS)`. If the kind of the job creates or removes objects at the
//! provider, it has a line in `use_case::registry::job_plan`.
//!
//! The endpoint layer rolls back the unit of work of a dry run. No job and no record remain; only an audit entry is
//! written, in a separate unit of work.

use core_domain::access::AuditEvent;
use core_domain::kernel::{JobId, Result};
use core_domain::port::UnitOfWork;
use core_domain::provisioning::{Job, JobStatus};
use core_domain::use_case::registry::job_plan::{self, JobPlan};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Answer, AnswerKind, DryRunQuery, DryRunResponse, Output, Reply};

/// The success statuses of a row that queues a job: 202, or 200 with the plan of a dry run.
pub(super) const SUCCESS: &[StatusCode] = &[StatusCode::ACCEPTED, StatusCode::OK];

/// The response of an endpoint that queues a job: the job, or with `dryRun` its plan.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "QueuedOf_{J}")]
pub(super) enum QueuedResponse<J = QueuedJob> {
    /// The job was queued.
    Job(J),
    /// The job was not queued; this is its plan.
    Plan(DryRunResponse<JobPlan>),
}

/// A job that was queued.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct QueuedJob {
    /// The id of the job.
    job_id: JobId,
    /// Always `QUEUED`, also if the request is repeated and its job is already in progress.
    status: JobStatus,
}

impl QueuedJob {
    pub(super) fn of(job: &Job) -> Self {
        Self {
            job_id: job.id.clone(),
            status: JobStatus::Queued,
        }
    }
}

impl<J: Serialize + JsonSchema + Send + 'static> Answer for QueuedResponse<J> {
    fn kind() -> AnswerKind {
        Output::<Self>::kind()
    }

    fn dry_run(&self) -> Option<AuditEvent> {
        match self {
            Self::Job(_) => None,
            Self::Plan(planned) => Some(planned.plan().audit_event()),
        }
    }

    fn reply(self, default: StatusCode) -> Result<Reply> {
        let status = match self {
            Self::Job(_) => default,
            Self::Plan(_) => StatusCode::OK,
        };
        Output::new(self).reply(status)
    }
}

/// Returns the response to a request whose use case has queued a job in this unit of work. For a dry run it is the plan
/// of the job.
///
/// # Errors
/// Only those of the store, for a dry run.
pub(super) async fn queued_response(
    uow: &mut dyn UnitOfWork,
    query: DryRunQuery,
    job: &Job,
) -> Result<QueuedResponse> {
    queued_response_with(uow, query, job, QueuedJob::of(job)).await
}

/// Works like [`queued_response`], with `answer` as the response if this is not a dry run.
///
/// # Errors
/// Only those of the store, for a dry run.
pub(super) async fn queued_response_with<J>(
    uow: &mut dyn UnitOfWork,
    query: DryRunQuery,
    job: &Job,
    answer: J,
) -> Result<QueuedResponse<J>> {
    if !query.dry_run {
        return Ok(QueuedResponse::Job(answer));
    }
    let plan = job_plan::plan_of_job(uow, job).await?;
    Ok(QueuedResponse::Plan(DryRunResponse::new(plan)))
}
