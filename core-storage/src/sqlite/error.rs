//! Errors of SQLite and their meaning for a unit of work.

use std::sync::Arc;

use core_domain::kernel::StoreError;
use rusqlite::{Error, ErrorCode};

/// Converts the error of a statement.
pub(super) fn statement_error(error: Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::retry(error),
        Some(
            ErrorCode::CannotOpen
            | ErrorCode::SystemIoFailure
            | ErrorCode::DiskFull
            | ErrorCode::OperationInterrupted,
        ) => StoreError::unavailable(error),
        _ => StoreError::backend(error),
    }
}

/// The error of a commit, shared by the units that waited for it.
#[derive(Clone, Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct CommitError(Arc<Error>);

impl CommitError {
    pub(super) fn new(error: Error) -> Self {
        Self(Arc::new(error))
    }

    /// Returns the error for one of the units. A commit that found a lock has no effect. After a disk error it may have
    /// reached the write-ahead log, so the outcome is unknown.
    pub(super) fn failure(&self) -> StoreError {
        match self.0.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                StoreError::retry(self.clone())
            }
            _ => StoreError::commit_unknown(self.clone()),
        }
    }
}
