//! Results of the methods of a step: observations, undo results and errors.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::kernel::{Error, Result, StoreError, Timestamp};
use crate::port::{BlobError, Cause, ProviderError};
use crate::provisioning::{FirstObservation, JobError, kept_output, kept_reason};

/// The result of observing the external object of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Observation<T> {
    /// The effect does not exist.
    Absent,
    /// The effect exists; contains the output of the step.
    Present(T),
    /// An older version of the effect exists and is replaced. Undo keeps it.
    Outdated,
    /// Another object has the name of the object to create; the text describes it.
    Conflict(String),
}

impl<T> Observation<T> {
    /// Returns the observation in its stored form; `None` for a conflict, which has no effect.
    pub(super) const fn first_look(&self) -> Option<FirstObservation> {
        match self {
            Self::Absent => Some(FirstObservation::Absent),
            Self::Present(_) | Self::Outdated => Some(FirstObservation::Present),
            Self::Conflict(_) => None,
        }
    }
}

/// The result of undoing a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undone {
    /// The effect was removed.
    Removed,
    /// The effect is kept. The text is the reason; the job's output and history show it.
    Kept(String),
}

impl Undone {
    /// Creates the result of an undo that kept the effect for this reason.
    #[must_use]
    pub fn kept_because(why: impl Into<String>) -> Self {
        Self::Kept(why.into())
    }

    /// Returns `true` if the effect was removed.
    #[must_use]
    pub const fn is_removed(&self) -> bool {
        matches!(self, Self::Removed)
    }

    /// Returns the output of the undo step.
    pub(super) fn output(&self) -> Value {
        match self {
            Self::Removed => Value::Null,
            Self::Kept(why) => kept_output(why),
        }
    }

    /// Parses the output of an undo step.
    pub(super) fn of_output(output: &Value) -> Self {
        kept_reason(output).map_or(Self::Removed, Self::kept_because)
    }
}

/// The reason why an attempt of a step did not finish. Readers of the job see the [`JobError`]; the [`Cause`] is only
/// logged.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StepError {
    /// The step had no effect, and a later attempt may succeed.
    Transient(JobError, Option<Cause>),
    /// Works like [`StepError::Transient`], with a minimum delay before the next attempt.
    Throttled {
        /// The minimum delay before the next attempt.
        retry_after: Duration,
    },
    /// The effect may or may not have happened. The next attempt observes first.
    OutcomeUnknown(JobError, Option<Cause>),
    /// A later attempt cannot succeed.
    Permanent(JobError, Option<Cause>),
    /// Something that the step depends on is missing; the text names it.
    Precondition(String),
    /// The step waits for an external event. The attempt does not count.
    Wait {
        /// The time of the next attempt.
        until: Timestamp,
        /// The event that the step waits for, in words.
        reason: String,
        /// The intermediate output, see [`StepError::wait_with`]; `None` if nothing has to be recorded.
        output: Option<Value>,
    },
    /// A part is done. The step continues after the jobs of other lanes; failed attempts are reset.
    Unfinished {
        /// The output so far, see [`StepError::unfinished`]; `None` if nothing has to be recorded.
        found: Option<Value>,
    },
    /// The worker has lost the job. It must stop and write nothing.
    LeaseLost,
}

impl StepError {
    /// Creates a transient error with the code `TRANSIENT_ERROR`.
    #[must_use]
    pub fn transient(message: impl Into<String>) -> Self {
        Self::Transient(JobError::new("TRANSIENT_ERROR", message), None)
    }

    /// Creates an error after which the effect may or may not exist.
    #[must_use]
    pub fn unknown(code: &str, message: impl Into<String>) -> Self {
        Self::OutcomeUnknown(JobError::new(code, message), None)
    }

    /// Creates an error that a retry cannot fix.
    #[must_use]
    pub fn permanent(code: &str, message: impl Into<String>) -> Self {
        Self::Permanent(JobError::new(code, message), None)
    }

    /// Creates a wait with an intermediate output. `found` is an output of the step;
    /// [`JobStep::record_wait`](super::JobStep::record_wait) writes it in the same unit of work.
    ///
    /// # Errors
    /// Returns an error if `found` cannot be encoded as JSON.
    pub fn wait_with(
        until: Timestamp,
        reason: impl Into<String>,
        found: &impl Serialize,
    ) -> Result<Self> {
        Ok(Self::Wait {
            until,
            reason: reason.into(),
            output: Some(to_json(found)?),
        })
    }

    /// Creates the error of an attempt that completed a part of a step that is larger than its time limit. The job
    /// frees its slot, stays at the head of its lane and continues at once. Failed attempts and lost leases are reset.
    /// `found` is an output of the step; [`JobStep::record_wait`](super::JobStep::record_wait) writes it in the same
    /// unit of work.
    ///
    /// # Errors
    /// Returns an error if `found` cannot be encoded as JSON.
    pub fn unfinished(found: &impl Serialize) -> Result<Self> {
        let found = Some(to_json(found)?);
        Ok(Self::Unfinished { found })
    }

    /// Returns the cause to log, if any.
    #[must_use]
    pub const fn cause(&self) -> Option<&Cause> {
        match self {
            Self::Transient(_, cause)
            | Self::OutcomeUnknown(_, cause)
            | Self::Permanent(_, cause) => cause.as_ref(),
            Self::Throttled { .. }
            | Self::Precondition(_)
            | Self::Wait { .. }
            | Self::Unfinished { .. }
            | Self::LeaseLost => None,
        }
    }
}

impl From<ProviderError> for StepError {
    fn from(error: ProviderError) -> Self {
        let job_error = |code| JobError::new(code, error.to_string());
        match &error {
            ProviderError::Transient(cause) => {
                Self::Transient(job_error("PROVIDER_UNAVAILABLE"), Some(cause.clone()))
            }
            ProviderError::Unfinished => Self::Unfinished { found: None },
            ProviderError::Throttled {
                retry_after_seconds,
            } => Self::Throttled {
                retry_after: Duration::from_secs(*retry_after_seconds),
            },
            ProviderError::OutcomeUnknown(cause) => {
                Self::OutcomeUnknown(job_error("PROVIDER_TIMEOUT"), Some(cause.clone()))
            }
            ProviderError::Permanent(_) => Self::Permanent(job_error("PROVIDER_REFUSED"), None),
            ProviderError::Damaged(cause) => {
                Self::Permanent(job_error("PROVIDER_DAMAGED"), Some(cause.clone()))
            }
            ProviderError::NameTaken(_) => Self::Permanent(job_error("NAME_TAKEN"), None),
        }
    }
}

impl From<BlobError> for StepError {
    fn from(error: BlobError) -> Self {
        match error {
            BlobError::Missing => Self::Precondition("the upload is no longer stored".to_owned()),
            BlobError::Failed(cause) => Self::Transient(
                JobError::new(
                    "BLOB_STORE_FAILED",
                    "the uploaded bytes could not be read or written",
                ),
                Some(cause),
            ),
        }
    }
}

impl From<Error> for StepError {
    fn from(error: Error) -> Self {
        let job_error = JobError {
            code: error.code().as_str().to_owned(),
            message: error.to_string(),
            details: error.details(),
        };
        match error {
            Error::Store(error) if !error.is_certainly_not_applied() => {
                Self::OutcomeUnknown(job_error, Some(Cause::new(error)))
            }
            Error::Store(error) => Self::Transient(job_error, Some(Cause::new(error))),
            Error::Upstream(cause) | Error::Unavailable(cause) | Error::Internal(cause) => {
                Self::Transient(job_error, Some(cause.into()))
            }
            Error::NotFound(kind) => Self::Precondition(format!("the {kind} is gone")),
            _ => Self::Permanent(job_error, None),
        }
    }
}

impl From<StoreError> for StepError {
    fn from(error: StoreError) -> Self {
        Error::from(error).into()
    }
}

/// Encodes a value as JSON.
pub(super) fn to_json<T: Serialize>(value: &T) -> Result<Value> {
    serde_json::to_value(value)
        .map_err(|error| Error::Internal(format!("a value cannot be encoded as JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_store_error_that_may_have_been_applied_leaves_the_outcome_unknown() {
        let lost = StepError::from(StoreError::commit_unknown("connection lost"));
        assert!(matches!(lost, StepError::OutcomeUnknown(..)));
        for error in [
            StoreError::unavailable("no connection"),
            StoreError::retry("serialization failure"),
            StoreError::backend("syntax error"),
        ] {
            assert!(matches!(StepError::from(error), StepError::Transient(..)));
        }
    }

    const SECRET: &str = "/srv/data/r2/x: EIO";

    fn visible_text(error: &StepError) -> String {
        match error {
            StepError::Transient(error, _)
            | StepError::OutcomeUnknown(error, _)
            | StepError::Permanent(error, _) => format!("{}{}", error.message, error.details),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn job_errors_hide_the_cause_and_the_log_receives_it() {
        let failures: [StepError; 7] = [
            ProviderError::Transient(SECRET.into()).into(),
            ProviderError::OutcomeUnknown(SECRET.into()).into(),
            ProviderError::Damaged(SECRET.into()).into(),
            BlobError::Failed(SECRET.into()).into(),
            Error::Upstream(SECRET.to_owned()).into(),
            Error::Internal(SECRET.to_owned()).into(),
            StoreError::backend(SECRET).into(),
        ];
        for failure in failures {
            assert!(!visible_text(&failure).contains(SECRET), "{failure:?}");
            let cause = failure.cause().map(ToString::to_string);
            assert!(cause.is_some_and(|cause| cause.contains(SECRET)));
        }
        let refused: StepError = ProviderError::Permanent("no such binding".to_owned()).into();
        assert!(visible_text(&refused).contains("no such binding"));
    }
}
