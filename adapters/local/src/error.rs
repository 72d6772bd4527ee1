//! What can go wrong on this machine, and what it means to the job engine.

use std::io;
use std::path::PathBuf;

use core_domain::port::{BlobError, ProviderError};

/// What can go wrong in the local provider.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// There is no such object.
    #[error("there is no {0}")]
    Missing(String),
    /// The request can never be carried out; says why.
    #[error("{0}")]
    Invalid(String),
    /// The name belongs to an object of another owner.
    #[error("the name {0} is taken by something else")]
    Taken(String),
    /// Something on the path is a symbolic link, or not of the kind it should be: it is left alone.
    #[error("{} is not a plain file or folder of ours", .0.display())]
    Foreign(PathBuf),
    /// A file of ours makes no sense.
    #[error("{} is damaged: {reason}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The file system failed.
    #[error("the file system failed: {0}")]
    Io(#[from] io::Error),
    /// SQLite failed.
    #[error("SQLite failed: {0}")]
    Sqlite(#[from] sqlx::Error),
    /// A test asked for this failure.
    #[error("{0}")]
    Fault(ProviderError),
}

/// The result of a call on this machine.
pub type Result<T, E = LocalError> = std::result::Result<T, E>;

impl From<LocalError> for ProviderError {
    fn from(error: LocalError) -> Self {
        match error {
            LocalError::Fault(fault) => fault,
            LocalError::Taken(name) => Self::NameTaken(name),
            LocalError::Missing(_)
            | LocalError::Invalid(_)
            | LocalError::Foreign(_)
            | LocalError::Damaged { .. } => Self::Permanent(error.to_string()),
            LocalError::Io(_) | LocalError::Sqlite(_) => Self::Transient(error.to_string()),
        }
    }
}

impl From<LocalError> for BlobError {
    fn from(error: LocalError) -> Self {
        match error {
            LocalError::Missing(_) => Self::Missing,
            other => Self::Failed(other.to_string()),
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
