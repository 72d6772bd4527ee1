//! What an error of SQLite means.

use std::sync::Arc;

use core_domain::kernel::StoreError;
use rusqlite::{Error, ErrorCode};

/// An error of a statement.
pub(super) fn failure(error: Error) -> StoreError {
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

/// An error of a commit that several units wait for.
#[derive(Clone, Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct CommitError(Arc<Error>);

impl CommitError {
    pub(super) fn new(error: Error) -> Self {
        Self(Arc::new(error))
    }

    /// What each of the units answers. A commit that met a lock did not happen; one that met an error of the disk may
    /// have reached the write-ahead log all the same.
    pub(super) fn failure(&self) -> StoreError {
        match self.0.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                StoreError::retry(self.clone())
            }
            _ => StoreError::commit_unknown(self.clone()),
        }
    }
}
