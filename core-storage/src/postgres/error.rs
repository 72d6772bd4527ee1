//! Errors of the driver.

use std::error::Error as _;
use std::io;

use tokio_postgres::Error;

use crate::sql::postgres::{PostgresError, RunError};

impl From<Error> for RunError {
    fn from(error: Error) -> Self {
        Self::Driver(describe(&error))
    }
}

/// Describes the error without details that may contain row data.
fn describe(error: &Error) -> PostgresError {
    if let Some(reported) = error.as_db_error() {
        return PostgresError::of_server(reported.code().code(), reported.message());
    }
    let cause = error
        .source()
        .and_then(|cause| cause.downcast_ref::<io::Error>());
    PostgresError::of_driver(match cause {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    })
}
