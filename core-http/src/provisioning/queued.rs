//! What every operation that queues a job answers, and how it is asked with `dryRun=true` what it would do.
//!
//! A row gets both by three things: its handler takes [`DryRunQuery`], runs its use case and ends with
//! `queued(uow, input.query, &job).await`; the row says `.success(SUCCESS)`; and its kind, if it makes or removes objects at
//! the provider, has a line in `use_case::registry::job_plan`. The unit of work of a plan is undone by the endpoint layer:
//! no job, no row, no effect, but an entry of the audit in a unit of its own.

use core_domain::access::AuditEvent;
use core_domain::kernel::{JobId, Result};
use core_domain::port::UnitOfWork;
use core_domain::provisioning::{Job, JobStatus};
use core_domain::use_case::registry::job_plan::{self, JobPlan};
use http::StatusCode;
use schemars::JsonSchema;
use serde::Serialize;

use crate::kernel::{Answer, AnswerKind, DryRunQuery, Output, Planned, Reply};

/// The statuses of success of every row that queues a job: 202, or 200 with the plan.
pub(super) const SUCCESS: &[StatusCode] = &[StatusCode::ACCEPTED, StatusCode::OK];

/// A job was queued, or what it would do.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "QueuedOf_{J}")]
pub(super) enum Queued<J = QueuedJob> {
    /// It was queued.
    Job(J),
    /// It was not queued.
    Plan(Planned<JobPlan>),
}

/// A job was queued.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct QueuedJob {
    job_id: JobId,
    /// `QUEUED`, also when the request is repeated and its job is further by now.
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

impl<J: Serialize + JsonSchema + Send + 'static> Answer for Queued<J> {
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

/// The answer to a request whose use case has queued a job in this unit of work.
///
/// # Errors
/// When the store failed.
pub(super) async fn queued(
    uow: &mut dyn UnitOfWork,
    query: DryRunQuery,
    job: &Job,
) -> Result<Queued> {
    queued_as(uow, query, job, QueuedJob::of(job)).await
}

/// As [`queued`], with this answer when it was.
///
/// # Errors
/// As [`queued`].
pub(super) async fn queued_as<J>(
    uow: &mut dyn UnitOfWork,
    query: DryRunQuery,
    job: &Job,
    answer: J,
) -> Result<Queued<J>> {
    if !query.dry_run {
        return Ok(Queued::Job(answer));
    }
    let plan = job_plan::of(uow, job).await?;
    Ok(Queued::Plan(Planned::new(plan)))
}
