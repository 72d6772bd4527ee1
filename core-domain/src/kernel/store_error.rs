//! The errors of a store.

use std::error::Error;
use std::fmt;

/// The cause of a [`StoreError`]: the error of the driver, or a text.
type Cause = Box<dyn Error + Send + Sync>;

/// The error of a store. `Display` and `Debug` include the cause, so that one log line is enough. Do not show either to
/// callers of the interface.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another row has a value that must be unique. The unit of work can continue.
    #[error("{table}: {index} is taken")]
    Conflict {
        /// The table of the row.
        table: &'static str,
        /// The unique index, as named in the description of the table.
        index: &'static str,
    },
    /// The record was changed or deleted since it was read. The unit of work can continue.
    #[error("{table}: the record has changed since it was read")]
    Stale {
        /// The table of the record.
        table: &'static str,
    },
    /// The cursor was not issued by this installation, or it belongs to another list. The unit of work can continue.
    #[error("the cursor does not belong to this list")]
    InvalidCursor,
    /// The unit conflicts with a concurrent one (serialization failure, deadlock or lock time-out). Run it again from
    /// the start.
    #[error("the unit of work must be run again: {0}")]
    Retry(#[source] Cause),
    /// The store cannot be reached.
    #[error("the store cannot be reached: {0}")]
    Unavailable(#[source] Cause),
    /// The connection was lost or the disk failed during the commit, so the commit may have been applied.
    #[error("the outcome of the commit is unknown: {0}")]
    CommitUnknown(#[source] Cause),
    /// A row cannot be decoded.
    #[error("{table}.{column} of {key} cannot be decoded: {source}")]
    Corrupt {
        /// The table of the row.
        table: &'static str,
        /// The column with the invalid value.
        column: &'static str,
        /// The key of the row.
        key: String,
        /// The reason why the value is invalid.
        source: Cause,
    },
    /// Any other error of the store. Also returned for every use of a unit of work after an error that aborted it.
    #[error("the store failed: {0}")]
    Backend(#[source] Cause),
}

impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Omits the `Debug` output of the cause: a driver's error can contain rows ("Failing row contains (..)").
        f.debug_tuple("StoreError")
            .field(&self.to_string())
            .finish()
    }
}

impl StoreError {
    /// Creates a [`StoreError::Retry`] from an error or a text.
    pub fn retry(cause: impl Into<Cause>) -> Self {
        Self::Retry(cause.into())
    }

    /// Turns a conflict into [`StoreError::Retry`], for a unit whose values can conflict only with those of a
    /// concurrent unit. Returns other errors unchanged.
    #[must_use]
    pub fn conflict_as_retry(self) -> Self {
        match self {
            conflict @ Self::Conflict { .. } => Self::retry(conflict),
            error => error,
        }
    }

    /// Creates a [`StoreError::Unavailable`] from an error or a text.
    pub fn unavailable(cause: impl Into<Cause>) -> Self {
        Self::Unavailable(cause.into())
    }

    /// Creates a [`StoreError::CommitUnknown`] from an error or a text.
    pub fn commit_unknown(cause: impl Into<Cause>) -> Self {
        Self::CommitUnknown(cause.into())
    }

    /// Creates a [`StoreError::Backend`] from an error or a text.
    pub fn backend(cause: impl Into<Cause>) -> Self {
        Self::Backend(cause.into())
    }

    /// Returns whether it is certain that nothing of the unit of work was stored, so that the unit can be run again
    /// without doing anything twice. Only [`StoreError::CommitUnknown`] leaves this open.
    #[must_use]
    pub const fn is_certainly_not_applied(&self) -> bool {
        match self {
            Self::CommitUnknown(_) => false,
            Self::Conflict { .. }
            | Self::Stale { .. }
            | Self::InvalidCursor
            | Self::Retry(_)
            | Self::Unavailable(_)
            | Self::Corrupt { .. }
            | Self::Backend(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn lost_connection() -> io::Error {
        io::Error::new(io::ErrorKind::ConnectionReset, "reset by the database")
    }

    fn corrupt() -> StoreError {
        StoreError::Corrupt {
            table: "jobs",
            column: "steps",
            key: "job-1".to_owned(),
            source: "invalid JSON".into(),
        }
    }

    #[test]
    fn the_cause_can_be_downcast() {
        let errors = [
            StoreError::retry(lost_connection()),
            StoreError::unavailable(lost_connection()),
            StoreError::commit_unknown(lost_connection()),
            StoreError::backend(lost_connection()),
        ];
        for error in errors {
            let cause = error.source().and_then(|e| e.downcast_ref::<io::Error>());
            let kind = cause.map(io::Error::kind);
            assert_eq!(kind, Some(io::ErrorKind::ConnectionReset), "{error}");
        }
        let cause = corrupt().source().map(ToString::to_string);
        assert_eq!(cause.as_deref(), Some("invalid JSON"));
    }

    #[test]
    fn display_and_debug_contain_the_meaning_and_the_cause() {
        let error = StoreError::unavailable(lost_connection());
        let text = "the store cannot be reached: reset by the database";
        assert_eq!(error.to_string(), text);
        assert_eq!(format!("{error:?}"), format!("StoreError({text:?})"));
        let text = corrupt().to_string();
        assert_eq!(text, "jobs.steps of job-1 cannot be decoded: invalid JSON");
    }

    #[test]
    fn debug_omits_the_rows_in_an_error_of_the_driver() {
        #[derive(Debug, thiserror::Error)]
        #[error("null value in column")]
        struct Driver {
            detail: &'static str,
        }
        let detail = "Failing row contains (secret)";
        let error = StoreError::backend(Driver { detail });
        assert!(!format!("{error:?}").contains("secret"));
        let cause = error.source().and_then(|e| e.downcast_ref::<Driver>());
        assert_eq!(cause.map(|driver| driver.detail), Some(detail));
    }

    #[test]
    fn only_a_commit_with_an_unknown_outcome_may_have_been_applied() {
        let (table, index) = ("jobs", "key");
        let not_applied = [
            StoreError::Conflict { table, index },
            StoreError::Stale { table },
            StoreError::InvalidCursor,
            StoreError::retry("serialization failure"),
            StoreError::unavailable(lost_connection()),
            corrupt(),
            StoreError::backend("syntax error"),
        ];
        for error in not_applied {
            assert!(error.is_certainly_not_applied(), "{error}");
        }
        assert!(!StoreError::commit_unknown(lost_connection()).is_certainly_not_applied());
    }
}
