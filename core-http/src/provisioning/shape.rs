//! The shapes of provisioning (interface: "Provisioning job and DLQ entry").

use core_domain::kernel::{DlqEntryId, EntityId, Environment, JobId, PlatformId, Timestamp};
use core_domain::provisioning::{
    FailureKind, Job, JobError, JobLease, JobStatus, Step, StepStatus,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::kernel::Limit;

/// Query of `GET /api/v1/provision/jobs`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WhichJobs {
    /// Of this platform.
    pub(super) platform_id: Option<PlatformId>,
    /// With this status.
    pub(super) status: Option<JobStatus>,
    #[serde(default)]
    pub(super) limit: Limit,
    pub(super) cursor: Option<String>,
}

/// What went wrong.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ErrorShape {
    code: String,
    message: String,
    details: Value,
}

impl From<JobError> for ErrorShape {
    fn from(error: JobError) -> Self {
        Self {
            code: error.code,
            message: error.message,
            details: error.details,
        }
    }
}

/// A step of a job.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StepShape {
    name: String,
    status: StepStatus,
    attempts: i64,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    error: Option<ErrorShape>,
    output: Option<Value>,
    effect_key: Option<String>,
}

impl From<Step> for StepShape {
    fn from(step: Step) -> Self {
        Self {
            name: step.name,
            status: step.status,
            attempts: step.attempts,
            started_at: step.started_at,
            finished_at: step.finished_at,
            error: step.error.map(Into::into),
            output: step.output,
            effect_key: step.effect_key,
        }
    }
}

/// How far a job is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProgressShape {
    completed_steps: usize,
    total_steps: usize,
    percent: u8,
    message: String,
}

/// Who queued a job.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ActorShape {
    #[serde(rename = "type")]
    kind: String,
    id: String,
}

/// A job.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobShape {
    job_id: JobId,
    kind: String,
    platform_id: Option<PlatformId>,
    entity_id: Option<EntityId>,
    environment: Option<Environment>,
    status: JobStatus,
    reason: Option<String>,
    failure_kind: Option<FailureKind>,
    error: Option<ErrorShape>,
    input: Value,
    output: Option<Value>,
    steps: Vec<StepShape>,
    current_step: Option<String>,
    progress: ProgressShape,
    attempts: i64,
    max_attempts: i64,
    lost_leases: i64,
    run_at: Timestamp,
    deadline_at: Timestamp,
    waiting_for: Option<String>,
    hold_reason: Option<String>,
    priority: i64,
    forced: bool,
    replay_count: i64,
    dlq_entry_id: Option<DlqEntryId>,
    parent_job_id: Option<JobId>,
    idempotency_key: Option<String>,
    request_id: String,
    trace_id: Option<String>,
    created_by: ActorShape,
    definition_version: i64,
    created_at: Timestamp,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    updated_at: Timestamp,
    /// For operators alone.
    #[serde(flatten)]
    operator: Option<OperatorShape>,
}

/// What only operators see of a job.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OperatorShape {
    lease_owner: Option<String>,
    lease_until: Option<Timestamp>,
    fence: i64,
}

impl OperatorShape {
    /// The fence of the job, and its lease if it has one.
    pub(super) fn new(job: &Job, lease: Option<&JobLease>) -> Self {
        Self {
            lease_owner: lease.map(|l| l.owner.clone()),
            lease_until: lease.map(|l| l.lease_until),
            fence: job.fence,
        }
    }
}

impl JobShape {
    /// Tells whether the job has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.status.is_terminal()
    }

    /// The job, why it is held if it is, and what operators see.
    pub(super) fn new(
        job: Job,
        hold_reason: Option<String>,
        operator: Option<OperatorShape>,
    ) -> Self {
        let progress = job.progress();
        let current_step = job.current_step().map(|i| job.steps[i].name.clone());
        Self {
            job_id: job.id,
            kind: job.kind,
            platform_id: job.platform_id,
            entity_id: job.entity_id,
            environment: job.environment,
            status: job.status,
            reason: job.reason,
            failure_kind: job.failure_kind,
            error: job.error.map(Into::into),
            input: job.input,
            output: job.output,
            steps: job.steps.into_iter().map(Into::into).collect(),
            current_step,
            progress: ProgressShape {
                completed_steps: progress.completed_steps,
                total_steps: progress.total_steps,
                percent: progress.percent,
                message: progress.message,
            },
            attempts: job.attempts,
            max_attempts: job.max_attempts,
            lost_leases: job.lost_leases,
            run_at: job.run_at,
            deadline_at: job.deadline_at,
            waiting_for: job.waiting_for,
            hold_reason,
            priority: job.priority,
            forced: job.forced,
            replay_count: job.replay_count,
            dlq_entry_id: job.dlq_entry_id,
            parent_job_id: job.parent_job_id,
            idempotency_key: job.idempotency_key,
            request_id: job.request_id,
            trace_id: job.trace_id,
            created_by: ActorShape {
                kind: job.created_by.kind,
                id: job.created_by.id,
            },
            definition_version: job.definition_version,
            created_at: job.created_at,
            started_at: job.started_at,
            finished_at: job.finished_at,
            updated_at: job.updated_at,
            operator,
        }
    }
}
