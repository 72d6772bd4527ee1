//! The errors of the local provider, and their meaning for the job engine.

use std::io;
use std::path::PathBuf;

use core_domain::port::{BlobError, Cause, LogError, ProviderError};

/// An error of the local provider. The messages contain no paths of this machine. Paths are in the sources of the
/// errors, for the log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// The object does not exist.
    #[error("{0} does not exist")]
    Missing(String),
    /// The request is invalid and can never succeed; the text gives the reason.
    #[error("{0}")]
    Invalid(String),
    /// A limit was exceeded; the text names the limit.
    #[error("{0}")]
    Limit(String),
    /// The name belongs to an object of another owner.
    #[error("the name {0} is taken by something else")]
    NameTaken(String),
    /// A part of the path is a symbolic link or has an unexpected file type. It is not touched.
    #[error("the data folder contains a symbolic link or an unexpected kind of file")]
    UnexpectedFile(#[source] PathError),
    /// A file of the provider cannot be decoded.
    #[error("a file of the local provider is damaged")]
    Damaged(#[source] PathError),
    /// The file system failed.
    #[error("the file system failed")]
    Io(#[from] io::Error),
    /// A call of SQLite failed.
    #[error("SQLite failed")]
    Sqlite(#[from] rusqlite::Error),
    /// A failure that a test injected.
    #[error("{0}")]
    Fault(ProviderError),
}

/// A problem with a file or folder.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", .path.display())]
pub struct PathError {
    /// The path of the file or folder.
    pub path: PathBuf,
    /// The description of the problem.
    pub reason: String,
}

impl LocalError {
    pub(crate) fn foreign(path: impl Into<PathBuf>) -> Self {
        Self::UnexpectedFile(PathError {
            path: path.into(),
            reason: "not a plain file or folder".to_owned(),
        })
    }

    pub(crate) fn damaged_file(path: impl Into<PathBuf>, reason: impl ToString) -> Self {
        Self::Damaged(PathError {
            path: path.into(),
            reason: reason.to_string(),
        })
    }
}

/// The result of a call to the local provider.
pub type Result<T, E = LocalError> = std::result::Result<T, E>;

impl From<LocalError> for ProviderError {
    fn from(error: LocalError) -> Self {
        match error {
            LocalError::Fault(fault) => fault,
            LocalError::NameTaken(name) => Self::NameTaken(name),
            LocalError::Missing(_) | LocalError::Invalid(_) | LocalError::Limit(_) => {
                Self::Permanent(error.to_string())
            }
            LocalError::UnexpectedFile(_) | LocalError::Damaged(_) => {
                Self::Damaged(Cause::new(error))
            }
            LocalError::Io(_) | LocalError::Sqlite(_) => Self::Transient(Cause::new(error)),
        }
    }
}

impl From<LocalError> for LogError {
    fn from(error: LocalError) -> Self {
        Self(Cause::new(error))
    }
}

impl From<LocalError> for BlobError {
    fn from(error: LocalError) -> Self {
        match error {
            LocalError::Missing(_) => Self::Missing,
            other => Self::Failed(Cause::new(other)),
        }
    }
}

/// Runs blocking work on the thread pool for blocking tasks.
pub(crate) async fn run_blocking<T, F>(work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T> + Send + 'static,
{
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(LocalError::Io(io::Error::other(error))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_messages_hide_paths_and_log_causes_show_them() {
        const PATH: &str = "/srv/core-data/pages";
        let failures = || {
            [
                LocalError::foreign(PATH),
                LocalError::damaged_file(PATH, "EOF"),
                LocalError::Io(io::Error::other(PATH)),
                LocalError::Sqlite(rusqlite::Error::InvalidPath(PATH.into())),
            ]
        };
        for error in failures() {
            assert!(!error.to_string().contains(PATH));
            let error = ProviderError::from(error);
            assert!(!error.to_string().contains(PATH), "{error}");
            assert!(Cause::new(error).to_string().contains(PATH));
        }
        for error in failures() {
            let error = BlobError::from(error);
            assert!(!error.to_string().contains(PATH), "{error}");
            assert!(Cause::new(error).to_string().contains(PATH));
        }
    }
}
