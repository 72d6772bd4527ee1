//! Reading uploaded sites. Adapters implement the archive formats; `cli` decides what a site may contain.

use std::io::{self, Read};
use std::sync::Arc;

use async_trait::async_trait;

use super::{BlobReader, Cause};
use crate::cli::{SiteError, SiteFile};

/// The reason why an upload cannot be opened as a site.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The content of the upload is not a valid site.
    #[error(transparent)]
    Refused(#[from] SiteError),
    /// The upload could not be read. The operation can be retried.
    #[error("the upload could not be read")]
    Unreadable(#[source] Cause),
}

/// Reads uploads (tar, tar.gz or zip) as sites.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait SiteArchives: Send + Sync + std::fmt::Debug {
    /// Reads the whole upload once and checks its content with [`crate::cli::SiteBuilder`]. Equal uploads result in
    /// equal sites. The memory use depends only on the file names, whose total length is limited.
    ///
    /// # Errors
    /// - [`ArchiveError::Refused`] if the content is not a valid site.
    /// - [`ArchiveError::Unreadable`] if the upload cannot be read.
    async fn open(&self, upload: Box<dyn BlobReader>) -> Result<Arc<dyn Site>, ArchiveError>;

    /// Reads an upload of some files of a site, and completes it with the list of all files, which is the JSON of a
    /// [`SiteManifest`](crate::cli::SiteManifest). An upload without content has no files.
    ///
    /// # Errors
    /// - [`ArchiveError::Refused`] if the content of the upload is not allowed, or is not in the list.
    /// - [`ArchiveError::Unreadable`] if the upload or the list cannot be read.
    async fn open_part(
        &self,
        upload: Box<dyn BlobReader>,
        manifest: Box<dyn BlobReader>,
    ) -> Result<Arc<dyn Site>, ArchiveError>;
}

/// The function that [`Site::read`] calls with each file and its content.
pub type FileVisitor<'a> = dyn FnMut(&SiteFile, &mut dyn Read) -> io::Result<()> + 'a;

/// A checked site whose content is still in its archive.
pub trait Site: Send + Sync + std::fmt::Debug {
    /// Returns the files of the site. Every path occurs once.
    fn files(&self) -> &[SiteFile];

    /// Returns the files whose content was uploaded. For all others the provider must have the content. Default: all.
    fn uploaded(&self) -> &[SiteFile] {
        self.files()
    }

    /// Calls the visitor with the content of every uploaded file, in the order of [`Site::uploaded`]. The visitor does not have to
    /// read a whole file. The method can be called repeatedly. It blocks on disk access, so do not call it on an async
    /// thread.
    ///
    /// # Errors
    /// The first error of the visitor, which ends the reading, or an error of the archive.
    fn read(&self, visitor: &mut FileVisitor<'_>) -> io::Result<()>;
}
