//! Errors of the driver and their meaning for a unit of work.

use std::error::Error as _;
use std::io;

use core_domain::kernel::StoreError;
use tokio_postgres::Error;

const UNANSWERED: &str = "the database does not respond in time";

/// The reason why a statement failed.
#[derive(Debug)]
pub(super) enum RunError {
    /// An error that the driver or the server reported.
    Driver(Error),
    /// The connection was closed without an error.
    Closed,
    /// The reply did not arrive in time because the server or the network failed.
    Unanswered,
    /// The visitor returned an error for a row.
    Visit(StoreError),
}

impl From<Error> for RunError {
    fn from(error: Error) -> Self {
        Self::Driver(error)
    }
}

/// Returns the SQLSTATE of an error that the server reported.
fn code(error: &Error) -> Option<&str> {
    error.code().map(tokio_postgres::error::SqlState::code)
}

/// Returns whether the code means a connection exception, a shutdown or too many connections.
fn is_connection_code(code: &str) -> bool {
    code.starts_with("08") || code.starts_with("57P") || code == "53300"
}

/// Returns whether the code means that the server accepts no writes or no such transaction, because another server has
/// become the primary.
fn is_standby_code(code: &str) -> bool {
    code == "25006" || code == "0A000"
}

/// An error of Postgres or of its driver, without details that may contain row data. It is the source of a
/// [`StoreError`].
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

    /// Describes the error without details, hints, contexts and the messages of data exceptions: all of them may
    /// contain row data.
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
    /// Returns whether the connection can no longer be used.
    pub(super) fn is_lost(&self) -> bool {
        match self {
            // An error that the server did not report means a broken connection, or one in an unknown state.
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

    /// Returns whether the reply did not arrive in time.
    pub(super) fn is_unanswered(&self) -> bool {
        matches!(self, Self::Unanswered)
    }

    /// Converts into the error of a unit of work.
    pub(super) fn into_failure(self) -> StoreError {
        match self {
            Self::Visit(error) => error,
            Self::Closed => closed(),
            Self::Unanswered => StoreError::unavailable(UNANSWERED),
            Self::Driver(error) => {
                let described = PostgresError::of(&error);
                match code(&error) {
                    // Serialization failure; deadlock; lock timeout; a unique violation that the unit's snapshot did
                    // not contain.
                    Some("40001" | "40P01" | "55P03" | "23505") => StoreError::retry(described),
                    // Cancelled, for example by the statement timeout; a unit that was idle for too long.
                    Some("57014" | "25P03") | None => StoreError::unavailable(described),
                    Some(code) if is_connection_code(code) || is_standby_code(code) => {
                        StoreError::unavailable(described)
                    }
                    Some(_) => StoreError::backend(described),
                }
            }
        }
    }

    /// Converts into the error of a commit. A commit that the server refused has no effect; after any other error the
    /// outcome is unknown.
    pub(super) fn into_commit_failure(self) -> StoreError {
        match self {
            Self::Visit(error) => error,
            Self::Closed => StoreError::commit_unknown("the connection is closed"),
            Self::Unanswered => StoreError::commit_unknown(UNANSWERED),
            Self::Driver(error) => match code(&error) {
                // The SQLSTATE 40003 is "statement completion unknown".
                Some(code) if code != "40003" && !is_connection_code(code) => {
                    Self::Driver(error).into_failure()
                }
                _ => StoreError::commit_unknown(PostgresError::of(&error)),
            },
        }
    }
}

/// Returns the error for a unit whose connection was closed.
pub(super) fn closed() -> StoreError {
    StoreError::unavailable("the connection is closed")
}
