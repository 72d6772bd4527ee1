//! The errors of backups.

use std::path::Path;

use core_domain::kernel::StoreError;
use core_domain::port::BlobError;
use core_storage::copy::CopyError;

use crate::SuiteError;

/// The reason why a backup, a restore or a copy ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackupError {
    /// A setting is invalid, or a database cannot be opened.
    #[error(transparent)]
    Suite(#[from] SuiteError),
    /// The records cannot be copied.
    #[error("the records cannot be copied")]
    Copy(#[from] CopyError),
    /// The uploads in a bucket, or in a store of the host program, cannot be read or written.
    #[error("the uploads cannot be copied")]
    Blobs(#[source] BlobError),
    /// The backup has uploads, but no store for them is set.
    #[error("the backup has uploads; set a bucket or a data folder for them")]
    NoBlobs,
    /// A file cannot be read or written.
    #[error("{path}: the file cannot be copied")]
    File {
        /// The path of the file.
        path: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The folder of a new backup, or of the data to restore, already has other files.
    #[error("{0} exists already; use a new or empty folder")]
    FolderNotEmpty(String),
    /// The folder of a new backup is in the data folder.
    #[error("{0} is in the data folder; write the backup to another place")]
    InsideData(String),
    /// The folder is not a complete backup.
    #[error("{0} is not a complete backup: it has no readable manifest.json")]
    NoManifest(String),
    /// The backup has a form that this version cannot read.
    #[error(
        "the backup has the form {0}, which this version cannot read; use the version that made it"
    )]
    UnknownForm(u32),
    /// The content of the backup differs from its manifest.
    #[error("{0} differs from the manifest of the backup; the backup is damaged")]
    Damaged(String),
    /// The store of the builder has no rows that can be copied.
    #[error("a store that the host program has set cannot be copied")]
    CustomStore,
}

impl BackupError {
    /// Returns the error of an operation on a file.
    pub(super) fn file(path: &Path, source: std::io::Error) -> Self {
        Self::File {
            path: path.display().to_string(),
            source,
        }
    }
}

impl From<StoreError> for BackupError {
    fn from(error: StoreError) -> Self {
        Self::Suite(error.into())
    }
}
