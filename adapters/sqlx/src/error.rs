//! Errors of the driver.

use core_domain::kernel::StoreError;
use core_storage::sql::postgres::{PostgresError, RunError};
use sqlx::Error;

/// Returns the meaning of an error for a unit of work.
pub(crate) fn run_error(error: Error) -> RunError {
    match error {
        Error::Database(reported) => {
            let code = reported.code().unwrap_or_default();
            RunError::Driver(PostgresError::of_server(&code, reported.message()))
        }
        Error::PoolTimedOut => {
            let text = "no database connection became free in time";
            RunError::Visit(StoreError::unavailable(text))
        }
        Error::PoolClosed => {
            let text = "the pool of database connections is closed";
            RunError::Visit(StoreError::unavailable(text))
        }
        // These say what the program did wrong, and the connection is not affected. Their texts may contain values.
        Error::ColumnDecode { .. } | Error::Decode(_) => {
            RunError::Visit(StoreError::backend("a value could not be decoded"))
        }
        Error::Encode(_) => RunError::Visit(StoreError::backend("a value could not be encoded")),
        Error::RowNotFound | Error::ColumnIndexOutOfBounds { .. } | Error::ColumnNotFound(_) => {
            RunError::Visit(StoreError::backend(error.to_string()))
        }
        other => RunError::Driver(PostgresError::of_driver(other.to_string())),
    }
}

/// Converts into the error of a unit of work.
pub(crate) fn failure(error: Error) -> StoreError {
    run_error(error).into_failure()
}

/// Converts the error of a statement of the host program. A unique violation is an answer for the host program, and not a
/// conflict that ends when the unit is run again.
pub(crate) fn host_failure(error: Error) -> StoreError {
    match run_error(error) {
        RunError::Driver(error) if error.sqlstate() == Some("23505") => StoreError::backend(error),
        other => other.into_failure(),
    }
}
