//! What an error of the driver means.

use core_domain::kernel::StoreError;
use tokio_postgres::Error;

/// Why a statement failed.
#[derive(Debug)]
pub(super) enum RunError {
    /// What the driver or the server says.
    Driver(Error),
    /// The connection ended without a word.
    Closed,
    /// What looked at the rows did not want them.
    Visit(StoreError),
}

impl From<Error> for RunError {
    fn from(error: Error) -> Self {
        Self::Driver(error)
    }
}

/// The code of an error that the server reported.
fn code(error: &Error) -> Option<&str> {
    error.code().map(tokio_postgres::error::SqlState::code)
}

/// Connection exceptions, shutdown, too many connections.
fn is_connection_code(code: &str) -> bool {
    code.starts_with("08") || code.starts_with("57P") || code == "53300"
}

impl RunError {
    /// Tells whether the connection cannot be used any more.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            // What the server did not report is a broken connection or one whose state nobody knows.
            Self::Driver(error) => {
                code(error).is_none_or(|code| code == "25P03" || is_connection_code(code))
            }
            Self::Closed => true,
            Self::Visit(_) => false,
        }
    }

    /// What it means for a unit of work.
    pub(super) fn into_failure(self) -> StoreError {
        match self {
            Self::Visit(error) => error,
            Self::Closed => closed(),
            Self::Driver(error) => match code(&error) {
                // Serialization failure; deadlock; lock time-out; a unique violation the unit's snapshot did not show.
                Some("40001" | "40P01" | "55P03" | "23505") => StoreError::retry(error),
                // Cancelled, by the statement time-out for one; and a unit that was silent for too long.
                Some("57014" | "25P03") | None => StoreError::unavailable(error),
                Some(code) if is_connection_code(code) => StoreError::unavailable(error),
                Some(_) => StoreError::backend(error),
            },
        }
    }

    /// What it means for a commit: one that the server refused did not happen; any other that failed may have.
    pub(super) fn into_commit_failure(self) -> StoreError {
        match self {
            Self::Visit(error) => error,
            Self::Closed => StoreError::commit_unknown("the connection is closed"),
            Self::Driver(error) => match code(&error) {
                // "Statement completion unknown".
                Some(code) if code != "40003" && !is_connection_code(code) => {
                    Self::Driver(error).into_failure()
                }
                _ => StoreError::commit_unknown(error),
            },
        }
    }
}

/// The connection of a unit ended.
pub(super) fn closed() -> StoreError {
    StoreError::unavailable("the connection is closed")
}
