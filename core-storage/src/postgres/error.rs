//! Errors of the driver.

use std::error::Error as _;
use std::io;

use core_domain::kernel::StoreError;
use tokio_postgres::Error;

use crate::sql::postgres::{PostgresError, RunError};

/// A pooler without a direct address is refused. It is the source of a [`StoreError::Backend`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the database URL leads to a pooler such as PgBouncer, which does not pass the settings of a session on; \
     also set the direct URL of the database (direct_url, DATABASE_DIRECT_URL)"
)]
pub struct PoolerError;

/// Converts an error of opening a connection. PgBouncer refuses settings of a session with a protocol violation.
pub(super) fn connect_failure(error: Error) -> StoreError {
    let is_refused_setting = error.as_db_error().is_some_and(|reported| {
        reported.code().code() == "08P01" && reported.message().contains("startup parameter")
    });
    if is_refused_setting {
        return StoreError::backend(PoolerError);
    }
    RunError::from(error).into_failure()
}

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
