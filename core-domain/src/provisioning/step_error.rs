//! How a step can fail, and what the engine makes of it.

use std::time::Duration;

use super::JobError;
use crate::kernel::{Error, Timestamp};
use crate::port::{BlobError, ProviderError, StoreError};

/// Why a step did not come to its end.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StepError {
    /// Nothing happened, and it may work later.
    Transient(JobError),
    /// As [`StepError::Transient`], and not before this much time has passed.
    Throttled {
        /// The least wait.
        retry_after: Duration,
    },
    /// It may or may not have happened: look before trying again.
    OutcomeUnknown(JobError),
    /// It will never work like this.
    Permanent(JobError),
    /// Something it builds on is missing; the text names it.
    Precondition(String),
    /// The world is not ready: to be tried again then, and the attempt does not count.
    Wait {
        /// When to look again.
        until: Timestamp,
        /// What is waited for.
        reason: String,
    },
    /// The job belongs to somebody else by now: stop, and write nothing.
    LeaseLost,
}

/// What a failed attempt means for the job.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// To be tried again, while there are attempts left.
    Transient {
        /// What went wrong.
        error: JobError,
        /// The provider's wish for a pause; zero when it has none.
        retry_after: Duration,
        /// Whether the effect may have happened.
        unknown: bool,
    },
    /// Not to be tried again.
    Permanent(JobError),
}

impl StepError {
    /// A failure worth another try.
    #[must_use]
    pub fn transient(message: impl Into<String>) -> Self {
        Self::Transient(JobError::new("TRANSIENT_ERROR", message))
    }

    /// A failure that trying again does not mend.
    #[must_use]
    pub fn permanent(code: &str, message: impl Into<String>) -> Self {
        Self::Permanent(JobError::new(code, message))
    }
}

impl From<ProviderError> for StepError {
    fn from(error: ProviderError) -> Self {
        let message = error.to_string();
        match error {
            ProviderError::Transient(_) => {
                Self::Transient(JobError::new("PROVIDER_UNAVAILABLE", message))
            }
            ProviderError::Throttled {
                retry_after_seconds,
            } => Self::Throttled {
                retry_after: Duration::from_secs(retry_after_seconds),
            },
            ProviderError::OutcomeUnknown(_) => {
                Self::OutcomeUnknown(JobError::new("PROVIDER_TIMEOUT", message))
            }
            ProviderError::Permanent(_) => {
                Self::Permanent(JobError::new("PROVIDER_REFUSED", message))
            }
            ProviderError::NameTaken(_) => Self::Permanent(JobError::new("NAME_TAKEN", message)),
        }
    }
}

impl From<BlobError> for StepError {
    fn from(error: BlobError) -> Self {
        match error {
            BlobError::Missing => Self::Precondition("the upload is no longer stored".to_owned()),
            BlobError::Failed(_) => Self::Transient(JobError::new(
                "BLOB_STORE_FAILED",
                "the uploaded bytes could not be read or written",
            )),
        }
    }
}

impl From<Error> for StepError {
    fn from(error: Error) -> Self {
        let code = error.code().as_str();
        let job_error = JobError {
            code: code.to_owned(),
            message: error.to_string(),
            details: error.details(),
        };
        match error {
            Error::Store(_) | Error::Upstream(_) | Error::Unavailable(_) | Error::Internal(_) => {
                Self::Transient(job_error)
            }
            Error::NotFound(kind) => Self::Precondition(format!("the {kind} is gone")),
            _ => Self::Permanent(job_error),
        }
    }
}

impl From<StoreError> for StepError {
    fn from(error: StoreError) -> Self {
        Error::from(error).into()
    }
}
