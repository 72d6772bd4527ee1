//! The steps of a job, kept inside it.

use serde_json::Value;
use sha2::{Digest, Sha256};

#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::{count, json, opt_json};
use crate::kernel::{JobId, Timestamp, hex, text_enum};

/// The largest output of a step, in bytes of JSON.
pub(super) const MAX_OUTPUT_BYTES: usize = 64 * 1024;

text_enum! {
    /// Where a step stands.
    pub enum StepStatus {
        /// Not begun, or to be tried again.
        Pending = "PENDING",
        /// Being worked on; its intent is stored.
        Running = "RUNNING",
        /// Done. Never applied again.
        Succeeded = "SUCCEEDED",
        /// It stopped the job.
        Failed = "FAILED",
        /// Left out, because an operator declared the job done.
        Skipped = "SKIPPED",
        /// Its holder was lost, or the job was ended under it: it may or may not have happened.
        Abandoned = "ABANDONED",
        /// Done once and taken back after a cancel: a retry does it again.
        Undone = "UNDONE",
    }
}

impl StepStatus {
    /// Tells whether there is nothing left to do: `SUCCEEDED` or `SKIPPED`.
    #[must_use]
    pub const fn is_done(self) -> bool {
        matches!(self, Self::Succeeded | Self::Skipped)
    }

    /// Tells whether there is something to take back, or may be: `SUCCEEDED` or `ABANDONED`.
    #[must_use]
    pub const fn may_have_happened(self) -> bool {
        matches!(self, Self::Succeeded | Self::Abandoned)
    }
}

text_enum! {
    /// The result of the first observation of a step, stored before its first effect.
    pub enum FirstLook {
        /// The object did not exist. Undo removes it.
        Absent = "ABSENT",
        /// The object existed before the job. Undo keeps it.
        Present = "PRESENT",
    }
}

/// What went wrong with a job or a step, for its readers: no secret, no upstream body.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct JobError {
    /// The kind of error in upper snake case.
    pub code: String,
    /// In words.
    pub message: String,
    /// More for programs; an object.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json()"))]
    pub details: Value,
}

impl JobError {
    /// An error without details.
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
    /// Its name, unique in the job.
    pub name: String,
    /// Where it stands.
    pub status: StepStatus,
    /// Failed attempts.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub attempts: i64,
    /// When it first began.
    pub started_at: Option<Timestamp>,
    /// When it was done or given up.
    pub finished_at: Option<Timestamp>,
    /// Its last error.
    pub error: Option<JobError>,
    /// What it made.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "opt_json()"))]
    pub output: Option<Value>,
    /// What makes every attempt the same request; set before the first one.
    pub effect_key: Option<String>,
    /// The result of the first observation; never changed by a later one. Only steps that can be undone have one. `None` before
    /// the first effect and after undo. Stored with the step, but not part of its serialized form: callers find it in the
    /// job's history.
    #[serde(default, skip_serializing)]
    #[schemars(skip)]
    pub first_look: Option<FirstLook>,
}

impl Step {
    /// A step that has not begun.
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

    /// Returns the reason for which undo keeps the object of the step; `None` if undo removes it.
    #[must_use]
    pub const fn stays_because(&self) -> Option<&'static str> {
        match self.first_look {
            Some(FirstLook::Absent) => None,
            Some(FirstLook::Present) => Some("it existed before the job"),
            None => Some("it is unknown whether it existed before the job"),
        }
    }
}

/// What every attempt of a step sends to the provider: the same for the same job and step, different for all others.
#[must_use]
pub fn effect_key(job: &JobId, step: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(job.as_str().as_bytes());
    hash.update([0]);
    hash.update(step.as_bytes());
    hex(&hash.finalize()[..16])
}
