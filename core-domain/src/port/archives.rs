//! Reading uploaded sites. The formats are an adapter's business; what may be in a site is `cli`'s.

use std::io::{self, Read};
use std::sync::Arc;

use async_trait::async_trait;

use super::{BlobReader, Cause};
use crate::cli::{SiteError, SiteFile};

/// Why an upload could not be opened as a site.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// It is no site.
    #[error(transparent)]
    Refused(#[from] SiteError),
    /// It could not be read; worth another try.
    #[error("the upload could not be read")]
    Unreadable(#[source] Cause),
}

/// Reads uploads (tar, tar.gz or zip) as sites.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
#[async_trait]
pub trait SiteArchives: Send + Sync + std::fmt::Debug {
    /// Reads the upload once, to its end, and checks everything in it as [`crate::cli::SiteBuilder`] does. The same upload
    /// always gives the same site. Memory grows with the names in the upload alone, and these are bounded.
    ///
    /// # Errors
    /// [`ArchiveError::Refused`] says what is wrong with the upload.
    async fn open(&self, upload: Box<dyn BlobReader>) -> Result<Arc<dyn Site>, ArchiveError>;
}

/// What [`Site::read`] gives each file to.
pub type FileVisitor<'a> = dyn FnMut(&SiteFile, &mut dyn Read) -> io::Result<()> + 'a;

/// A checked site whose contents still lie in their archive.
pub trait Site: Send + Sync + std::fmt::Debug {
    /// Its files; each path is there once.
    fn files(&self) -> &[SiteFile];

    /// Reads the contents, one after the other in the order of [`Site::files`]; the visitor need not read all of one. May be
    /// called again. Waits for the disk: call it off the async threads.
    ///
    /// # Errors
    /// The visitor's errors, which end the reading, and those of the archive.
    fn read(&self, visitor: &mut FileVisitor<'_>) -> io::Result<()>;
}
