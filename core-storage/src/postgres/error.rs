//! What an error of the driver means.

use core_domain::kernel::StoreError;
use sqlx::error::DatabaseError;

/// An error of a statement.
pub(super) fn failure(error: sqlx::Error) -> StoreError {
    match &error {
        sqlx::Error::Database(database) => match database.code().as_deref().unwrap_or_default() {
            // Serialization failure; deadlock; lock time-out; a unique violation the unit's snapshot did not show.
            "40001" | "40P01" | "55P03" | "23505" => StoreError::retry(error),
            // Cancelled, by the statement time-out for one; and a unit that was silent for too long.
            "57014" | "25P03" => StoreError::unavailable(error),
            code if is_connection_code(code) => StoreError::unavailable(error),
            _ => StoreError::backend(error),
        },
        _ if is_lost(&error) => StoreError::unavailable(error),
        _ => StoreError::backend(error),
    }
}

/// Connection exceptions, shutdown, too many connections.
fn is_connection_code(code: &str) -> bool {
    code.starts_with("08") || code.starts_with("57P") || code == "53300"
}

/// Tells whether the connection cannot be used any more.
pub(super) fn is_lost(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Database(database) => {
            let code = database.code();
            let code = code.as_deref().unwrap_or_default();
            code == "25P03" || is_connection_code(code)
        }
        sqlx::Error::Io(_) | sqlx::Error::Tls(_) | sqlx::Error::Protocol(_) => true,
        _ => false,
    }
}

/// A commit that the server refused did not happen; any other failed commit may have.
pub(super) fn commit_failure(error: sqlx::Error) -> StoreError {
    let code = error.as_database_error().and_then(DatabaseError::code);
    match code.as_deref() {
        // "Statement completion unknown".
        Some(code) if code != "40003" && !is_connection_code(code) => failure(error),
        _ => StoreError::commit_unknown(error),
    }
}
