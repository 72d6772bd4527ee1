//! The meaning of errors for a unit of work.

use core_domain::kernel::StoreError;

const CLOSED: &str = "the connection is closed";
const TIMED_OUT: &str = "the database does not respond in time";
const UNCONFIRMED: &str = "the wait for a standby to confirm the change was cancelled";

/// The reason why a statement failed.
#[derive(Debug)]
pub enum RunError {
    /// An error that the driver or the server reported.
    Driver(PostgresError),
    /// The connection was closed without an error.
    Closed,
    /// The reply did not arrive in time because the server or the network failed.
    TimedOut,
    /// The server made the change, but the wait for a synchronous standby to confirm it was cancelled. A failover can
    /// lose the change.
    Unconfirmed,
    /// The visitor returned an error for a row.
    Visit(StoreError),
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
    /// Describes an error that the server reported. The message of a data exception is omitted, because it may contain
    /// row data. Do not pass details, hints and contexts, which may contain it too.
    #[must_use]
    pub fn of_server(sqlstate: &str, message: &str) -> Self {
        let text = if sqlstate.starts_with("22") {
            format!("data exception (SQLSTATE {sqlstate})")
        } else {
            format!("{message} (SQLSTATE {sqlstate})")
        };
        Self {
            sqlstate: Some(sqlstate.to_owned()),
            text,
        }
    }

    /// Describes an error that the server did not report: the connection is broken or in an unknown state.
    #[must_use]
    pub fn of_driver(text: impl Into<String>) -> Self {
        Self {
            sqlstate: None,
            text: text.into(),
        }
    }

    /// Returns the SQLSTATE if the server reported the error.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        self.sqlstate.as_deref()
    }
}

impl RunError {
    /// Returns whether the connection can no longer be used.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        match self {
            // An error that the server did not report means a broken connection, or one in an unknown state.
            Self::Driver(error) => error.sqlstate().is_none_or(|code| {
                code == "25P03" || is_connection_code(code) || is_standby_code(code)
            }),
            Self::Closed | Self::TimedOut => true,
            Self::Unconfirmed | Self::Visit(_) => false,
        }
    }

    /// Returns whether the other connections to the server are most likely lost as well.
    #[must_use]
    pub fn is_of_server(&self) -> bool {
        let ended_one = matches!(self, Self::Driver(error) if error.sqlstate() == Some("25P03"));
        self.is_lost() && !ended_one
    }

    /// Returns whether the reply did not arrive in time.
    #[must_use]
    pub const fn is_timed_out(&self) -> bool {
        matches!(self, Self::TimedOut)
    }

    /// Converts into the error of a unit of work.
    #[must_use]
    pub fn into_failure(self) -> StoreError {
        match self {
            Self::Visit(error) => error,
            Self::Closed => closed_error(),
            Self::TimedOut => StoreError::unavailable(TIMED_OUT),
            Self::Unconfirmed => StoreError::unavailable(UNCONFIRMED),
            Self::Driver(error) => match error.sqlstate() {
                // Serialization failure; deadlock; lock timeout; a unique violation that the unit's snapshot did not
                // contain.
                Some("40001" | "40P01" | "55P03" | "23505") => StoreError::retry(error),
                // Cancelled, for example by the statement timeout; a unit that was idle for too long.
                Some("57014" | "25P03") | None => StoreError::unavailable(error),
                Some(code) if is_connection_code(code) || is_standby_code(code) => {
                    StoreError::unavailable(error)
                }
                Some(_) => StoreError::backend(error),
            },
        }
    }

    /// Converts into the error of a commit. A commit that the server refused has no effect; after any other error the
    /// outcome is unknown.
    #[must_use]
    pub fn into_commit_failure(self) -> StoreError {
        match self {
            Self::Visit(error) => error,
            Self::Closed => StoreError::commit_unknown(CLOSED),
            Self::TimedOut => StoreError::commit_unknown(TIMED_OUT),
            Self::Unconfirmed => StoreError::commit_unknown(UNCONFIRMED),
            Self::Driver(error) => match error.sqlstate() {
                // The SQLSTATE 40003 is "statement completion unknown".
                Some(code) if code != "40003" && !is_connection_code(code) => {
                    Self::Driver(error).into_failure()
                }
                _ => StoreError::commit_unknown(error),
            },
        }
    }
}

/// Returns the error for a unit whose connection was closed.
fn closed_error() -> StoreError {
    StoreError::unavailable(CLOSED)
}
