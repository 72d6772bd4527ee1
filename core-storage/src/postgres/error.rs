//! What an error of the driver means.

use std::error::Error as _;
use std::io;

use core_domain::kernel::StoreError;
use tokio_postgres::Error;

const UNANSWERED: &str = "the database does not answer in time";

/// Why a statement failed.
#[derive(Debug)]
pub(super) enum RunError {
    /// What the driver or the server says.
    Driver(Error),
    /// The connection ended without a word.
    Closed,
    /// The answer did not arrive in time: the server or the network has failed.
    Unanswered,
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

/// A server that accepts no writes or no such transaction: another one has become the primary.
fn is_standby_code(code: &str) -> bool {
    code == "25006" || code == "0A000"
}

/// An error of Postgres or of its driver, without the rows that theirs may quote: the source of a [`StoreError`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct PostgresError {
    sqlstate: Option<String>,
    text: String,
}

impl PostgresError {
    /// Returns the SQLSTATE if the server reported the error.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        self.sqlstate.as_deref()
    }

    /// Details, hints and contexts quote rows, and so do the messages of data exceptions: they are left out.
    fn of(error: &Error) -> Self {
        let Some(reported) = error.as_db_error() else {
            let cause = error
                .source()
                .and_then(|cause| cause.downcast_ref::<io::Error>());
            let text = match cause {
                Some(cause) => format!("{error}: {cause}"),
                None => error.to_string(),
            };
            return Self {
                sqlstate: None,
                text,
            };
        };
        let code = reported.code().code();
        let text = if code.starts_with("22") {
            format!("data exception (SQLSTATE {code})")
        } else {
            format!("{} (SQLSTATE {code})", reported.message())
        };
        Self {
            sqlstate: Some(code.to_owned()),
            text,
        }
    }
}

impl RunError {
    /// Tells whether the connection cannot be used any more.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            // What the server did not report is a broken connection or one whose state nobody knows.
            Self::Driver(error) => code(error).is_none_or(|code| {
                code == "25P03" || is_connection_code(code) || is_standby_code(code)
            }),
            Self::Closed | Self::Unanswered => true,
            Self::Visit(_) => false,
        }
    }

    /// Returns whether the other connections to the server are most likely lost as well.
    pub(super) fn is_of_server(&self) -> bool {
        let ended_one = matches!(self, Self::Driver(error) if code(error) == Some("25P03"));
        self.is_lost() && !ended_one
    }

    /// Returns whether the answer did not arrive in time.
    pub(super) fn is_unanswered(&self) -> bool {
        matches!(self, Self::Unanswered)
    }

    /// What it means for a unit of work.
    pub(super) fn into_failure(self) -> StoreError {
        match self {
            Self::Visit(error) => error,
            Self::Closed => closed(),
            Self::Unanswered => StoreError::unavailable(UNANSWERED),
            Self::Driver(error) => {
                let described = PostgresError::of(&error);
                match code(&error) {
                    // Serialization failure; deadlock; lock time-out; a unique violation the unit's snapshot did not show.
                    Some("40001" | "40P01" | "55P03" | "23505") => StoreError::retry(described),
                    // Cancelled, by the statement time-out for one; and a unit that was silent for too long.
                    Some("57014" | "25P03") | None => StoreError::unavailable(described),
                    Some(code) if is_connection_code(code) || is_standby_code(code) => {
                        StoreError::unavailable(described)
                    }
                    Some(_) => StoreError::backend(described),
                }
            }
        }
    }

    /// What it means for a commit: one that the server refused did not happen; any other that failed may have.
    pub(super) fn into_commit_failure(self) -> StoreError {
        match self {
            Self::Visit(error) => error,
            Self::Closed => StoreError::commit_unknown("the connection is closed"),
            Self::Unanswered => StoreError::commit_unknown(UNANSWERED),
            Self::Driver(error) => match code(&error) {
                // "Statement completion unknown".
                Some(code) if code != "40003" && !is_connection_code(code) => {
                    Self::Driver(error).into_failure()
                }
                _ => StoreError::commit_unknown(PostgresError::of(&error)),
            },
        }
    }
}

/// The connection of a unit ended.
pub(super) fn closed() -> StoreError {
    StoreError::unavailable("the connection is closed")
}
