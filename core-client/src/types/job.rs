//! Jobs: the work that creates and removes infrastructure.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::environment::Environment;
use super::open_enum::open_enum;

open_enum! {
    /// The status of a job.
    pub enum JobStatus {
        /// The job waits for a worker.
        Queued = "QUEUED",
        /// A worker runs the job.
        Running = "RUNNING",
        /// The job waits for something outside, such as a DNS record.
        Waiting = "WAITING",
        /// All steps are done. Final status.
        Completed = "COMPLETED",
        /// The job stopped. Final status.
        Failed = "FAILED",
    }
}

impl JobStatus {
    /// Returns whether a job in this status has ended.
    #[must_use]
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed)
    }
}

open_enum! {
    /// The status of a step.
    pub enum StepStatus {
        /// The step has not started.
        Pending = "PENDING",
        /// The step is in progress.
        Running = "RUNNING",
        /// The step is done.
        Succeeded = "SUCCEEDED",
        /// The step failed.
        Failed = "FAILED",
        /// The step was not necessary.
        Skipped = "SKIPPED",
        /// The job stopped before the step.
        Abandoned = "ABANDONED",
        /// The effects of the step were removed again.
        Undone = "UNDONE",
    }
}

/// A job that was queued, or its status after an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct JobRef {
    /// The id of the job.
    pub job_id: String,
    /// The status of the job.
    pub status: JobStatus,
}

/// The progress of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Progress {
    /// Number of steps that are done or were skipped.
    pub completed_steps: u64,
    /// Number of steps of the job.
    pub total_steps: u64,
    /// Share of the steps that are done, from 0 to 100 percent.
    pub percent: u64,
    /// The present activity of the job, in words.
    pub message: String,
}

/// An error of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct JobError {
    /// The error code, for example `STEP_TIMEOUT`.
    pub code: String,
    /// The description of the error, for people.
    pub message: String,
}

/// A step of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Step {
    /// The name of the step, unique within the job.
    pub name: String,
    /// The status of the step.
    pub status: StepStatus,
    /// Number of failed attempts of the step.
    pub attempts: u64,
    /// The latest error of the step; `None` if it has none.
    pub error: Option<JobError>,
}

/// A unit of work in several steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Job {
    /// The id of the job.
    pub job_id: String,
    /// The name of the job's kind, for example `platform.deprovision`.
    pub kind: String,
    /// The status of the job.
    pub status: JobStatus,
    /// The platform that the job works for; `None` if it works for none.
    pub platform_id: Option<String>,
    /// The environment that the job works in; `None` if it is not about one environment.
    pub environment: Option<Environment>,
    /// The steps of the job, in the order of execution.
    pub steps: Vec<Step>,
    /// The progress of the job.
    pub progress: Progress,
    /// The latest error of the job; `None` if its latest attempt had none.
    pub error: Option<JobError>,
    /// The reason why the job waits; `None` unless its status is `WAITING`.
    pub waiting_for: Option<String>,
    /// The reason why the queued job is held; `None` if it is not.
    pub hold_reason: Option<String>,
    /// The outputs of the steps by step name; `null` until the job completes.
    pub output: Value,
    /// The time at which the job was queued.
    pub created_at: String,
    /// The time at which the job ended; `None` before.
    pub finished_at: Option<String>,
}

/// An event in the history of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct JobEvent {
    /// The number of the event within the history. The first is 1.
    pub seq: u64,
    /// The name of the transition, for example `job.claimed`.
    #[serde(rename = "type")]
    pub event_type: String,
    /// The step that the event is about; `None` if it is about no step.
    pub step: Option<String>,
    /// The reason for the event; `None` if there is none.
    pub reason: Option<String>,
    /// The status of the job after the event.
    pub to_status: JobStatus,
    /// The time of the event.
    pub at: String,
}

/// An event of a job, with the progress at the time when it was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JobProgressEvent {
    /// The event of the history.
    #[serde(flatten)]
    pub event: JobEvent,
    /// The progress of the job when the event was sent.
    pub progress: Progress,
}

/// The jobs of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// The platform of the jobs. Default: the platform that the caller acts for.
    pub platform_id: Option<String>,
    /// The status of the jobs. Default: any.
    pub status: Option<JobStatus>,
}

/// The plan of an operation that was not executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct JobPlan {
    /// The kind of the job.
    pub kind: String,
    /// The steps of the job in their order.
    pub steps: Vec<PlannedStep>,
    /// The objects that the job would create or remove at the provider, at most 100 of each type.
    pub resources: Vec<PlannedResource>,
    /// The number of these objects, including those that are not listed.
    pub total_resources: u64,
}

/// A step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PlannedStep {
    /// The name of the step.
    pub name: String,
}

/// An object that a plan creates or removes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct PlannedResource {
    /// The action that the job would perform, such as `create`.
    pub action: String,
    /// The type of the object, such as `d1`.
    pub resource_type: String,
    /// The name of the object at the provider; `None` if it is generated with the job.
    pub cf_name: Option<String>,
}

/// The response to a request that queues a job, or that only plans it.
#[derive(Deserialize)]
#[serde(untagged)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) enum JobOrPlan {
    Job(JobRef),
    Plan(DryRun),
}

#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct DryRun {
    pub(crate) plan: JobPlan,
}
