//! Errors that end the server.

use core_suite::SuiteError;

/// Why the server, or the process that hosts workers, could not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Suite(#[from] SuiteError),
}
