//! The steps of a job, and the errors that jobs and steps record.

use serde_json::Value;
use sha2::{Digest, Sha256};

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::{count, json, opt_json};
use crate::kernel::{JobId, Timestamp, hex, text_enum};

/// Maximum size of the output of a step, in bytes of JSON.
pub(super) const MAX_OUTPUT_BYTES: usize = 64 * 1024;

text_enum! {
    /// The status of a step.
    pub enum StepStatus {
        /// The step has not started, or is to be tried again.
        Pending = "PENDING",
        /// The step is in progress. Its start was stored before the first effect.
        Running = "RUNNING",
        /// The step is done. It is never applied again.
        Succeeded = "SUCCEEDED",
        /// The step failed and stopped the job.
        Failed = "FAILED",
        /// The step was left out because an operator completed the job by force.
        Skipped = "SKIPPED",
        /// The step was interrupted: its worker was lost, or the job ended during the step. Its effect may or may not
        /// have happened.
        Abandoned = "ABANDONED",
        /// The step was undone after the job was cancelled. A retry of the job executes it again.
        Undone = "UNDONE",
    }
}

impl StepStatus {
    /// Returns whether the step needs no more work: `SUCCEEDED` or `SKIPPED`.
    #[must_use]
    pub const fn is_done(self) -> bool {
        matches!(self, Self::Succeeded | Self::Skipped)
    }

    /// Returns whether the effect of the step may exist and can be undone: `SUCCEEDED` or `ABANDONED`.
    #[must_use]
    pub const fn may_have_effect(self) -> bool {
        matches!(self, Self::Succeeded | Self::Abandoned)
    }
}

text_enum! {
    /// The result of the first observation of a step, stored before the step's first effect.
    pub enum FirstObservation {
        /// The object did not exist. Undo removes it.
        Absent = "ABSENT",
        /// The object existed before the job. Undo keeps it.
        Present = "PRESENT",
    }
}

/// The error of a job or a step. It contains no secrets and no response bodies of providers.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct JobError {
    /// Machine-readable error code in upper snake case, for example `STEP_TIMEOUT`.
    pub code: String,
    /// A description of the error for people.
    pub message: String,
    /// More data about the error for programs; an object.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json()"))]
    pub details: Value,
}

impl JobError {
    /// Creates an error without details.
    #[must_use]
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            details: Value::Object(serde_json::Map::new()),
        }
    }
}

/// A step of a job.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Step {
    /// Name of the step, unique within the job.
    pub name: String,
    /// The current status of the step.
    pub status: StepStatus,
    /// Number of failed attempts of the step. A retry by an operator resets it to 0.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub attempts: i64,
    /// The time at which the step first started. `null` if it has not started, or was undone.
    pub started_at: Option<Timestamp>,
    /// The time at which the step succeeded, failed or was abandoned. `null` before that.
    pub finished_at: Option<Timestamp>,
    /// The latest error of the step. `null` if it has none.
    pub error: Option<JobError>,
    /// The output of the step; the members depend on the kind. `null` unless the step has succeeded.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "opt_json()"))]
    pub output: Option<Value>,
    /// The key sent to the provider with every attempt of the step, so that repeated attempts have one effect. `null`
    /// before the first attempt.
    pub effect_key: Option<String>,
    /// The result of the first observation; a later observation does not change it. Only steps that can be undone have
    /// one. `None` before the first effect and after undo. The field is stored but not serialized: the job's history
    /// shows it.
    #[serde(default, skip_serializing)]
    #[schemars(skip)]
    pub first_look: Option<FirstObservation>,
}

impl Step {
    /// Creates a step that has not started.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            status: StepStatus::Pending,
            attempts: 0,
            started_at: None,
            finished_at: None,
            error: None,
            output: None,
            effect_key: None,
            first_look: None,
        }
    }

    /// Returns the reason why undo keeps the object of the step; `None` if undo removes it.
    #[must_use]
    pub const fn keep_reason(&self) -> Option<&'static str> {
        match self.first_look {
            Some(FirstObservation::Absent) => None,
            Some(FirstObservation::Present) => Some("it existed before the job"),
            None => Some("it is unknown whether it existed before the job"),
        }
    }
}

/// Returns the key that identifies all attempts of a step to the provider. It depends only on the job and the step
/// name, and differs for every other step.
#[must_use]
pub fn effect_key(job: &JobId, step: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(job.as_str().as_bytes());
    hash.update([0]);
    hash.update(step.as_bytes());
    hex(&hash.finalize()[..16])
}
