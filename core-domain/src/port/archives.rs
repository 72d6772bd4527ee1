//! Unpacking uploaded sites. The formats are somebody else's business; what may be in a site is `cli`'s.

use async_trait::async_trait;

use super::SiteFile;
use crate::cli::SiteError;

/// Turns an upload (tar, tar.gz or zip) into the files of a site.
#[async_trait]
pub trait SiteArchives: Send + Sync + std::fmt::Debug {
    /// The files, checked as [`crate::cli::SiteBuilder`] does. The same upload always gives the same answer.
    ///
    /// # Errors
    /// [`SiteError`] says what is wrong with the upload.
    async fn unpack(&self, upload: Vec<u8>) -> Result<Vec<SiteFile>, SiteError>;
}
