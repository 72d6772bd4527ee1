//! What can go wrong on this machine, and what it means to the job engine.

use std::io;
use std::path::PathBuf;

use core_domain::port::{BlobError, Cause, ProviderError};

/// What can go wrong in the local provider. No text of these shows a path of this machine: that is in their sources, for
/// the log.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// There is no such object.
    #[error("there is no {0}")]
    Missing(String),
    /// The request can never be carried out; says why.
    #[error("{0}")]
    Invalid(String),
    /// A limit was exceeded; says which.
    #[error("{0}")]
    Limit(String),
    /// The name belongs to an object of another owner.
    #[error("the name {0} is taken by something else")]
    Taken(String),
    /// Something on the path is a symbolic link, or not of the kind it should be: it is left alone.
    #[error("a part of the data folder is not a plain file or folder of ours")]
    Foreign(#[source] PathError),
    /// A file of ours makes no sense.
    #[error("a file of the local provider is damaged")]
    Damaged(#[source] PathError),
    /// The file system failed.
    #[error("the file system failed")]
    Io(#[from] io::Error),
    /// SQLite failed.
    #[error("SQLite failed")]
    Sqlite(#[from] rusqlite::Error),
    /// A test asked for this failure.
    #[error("{0}")]
    Fault(ProviderError),
}

/// What is wrong with a file or folder.
#[derive(Debug, thiserror::Error)]
#[error("{}: {reason}", .path.display())]
pub struct PathError {
    /// The file or folder.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: String,
}

impl LocalError {
    pub(crate) fn foreign(path: impl Into<PathBuf>) -> Self {
        Self::Foreign(PathError {
            path: path.into(),
            reason: "not a plain file or folder".to_owned(),
        })
    }

    pub(crate) fn damaged(path: impl Into<PathBuf>, reason: impl ToString) -> Self {
        Self::Damaged(PathError {
            path: path.into(),
            reason: reason.to_string(),
        })
    }
}

/// The result of a call on this machine.
pub type Result<T, E = LocalError> = std::result::Result<T, E>;

impl From<LocalError> for ProviderError {
    fn from(error: LocalError) -> Self {
        match error {
            LocalError::Fault(fault) => fault,
            LocalError::Taken(name) => Self::NameTaken(name),
            LocalError::Missing(_) | LocalError::Invalid(_) | LocalError::Limit(_) => {
                Self::Permanent(error.to_string())
            }
            LocalError::Foreign(_) | LocalError::Damaged(_) => Self::Damaged(Cause::new(error)),
            LocalError::Io(_) | LocalError::Sqlite(_) => Self::Transient(Cause::new(error)),
        }
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

/// Runs work that waits for the disk away from the async threads.
pub(crate) async fn blocking<T, F>(work: F) -> Result<T>
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
    fn no_error_for_tenants_shows_a_path_and_every_log_does() {
        const PATH: &str = "/srv/core-data/pages";
        let failures = || {
            [
                LocalError::foreign(PATH),
                LocalError::damaged(PATH, "EOF"),
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
