//! Reading uploaded sites: tar, tar.gz and zip, from a file and within bounds.
//!
//! What an archive says about itself is not believed: a file is read until it has one byte more than there is room for,
//! whatever its header says. What may be in a site is decided by [`SiteBuilder`](core_domain::cli::SiteBuilder) alone.
//! Contents pass through in pieces of 64 KiB; only the names in an archive stay in memory. These are bounded too, so that an
//! archive never needs more than 32 MiB, and two at once not more than 64.

mod entry;
mod site;
mod source;
mod tar_files;
#[cfg(test)]
mod tests;
mod walk;
mod zip_files;

use std::sync::Arc;

use async_trait::async_trait;
use core_domain::cli::Limits;
use core_domain::port::{ArchiveError, BlobReader, Site, SiteArchives};
use core_http::cli::UploadLimits;
use tokio::sync::Semaphore;

use self::entry::broken;
use self::site::ArchivedSite;

/// Opens uploads off the async threads, as many at a time as `cli.uploads.permits` says; others wait.
#[derive(Clone, Debug)]
pub struct UnpackArchives {
    limits: Limits,
    permits: Arc<Semaphore>,
}

impl UnpackArchives {
    /// Opens what keeps to these limits.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            permits: Arc::new(Semaphore::new(UploadLimits::default().permits)),
        }
    }

    /// Opens so many uploads at a time. Default: 2.
    #[must_use]
    pub fn with_permits(mut self, permits: usize) -> Self {
        self.permits = Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)));
        self
    }
}

impl Default for UnpackArchives {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

#[async_trait]
impl SiteArchives for UnpackArchives {
    async fn open(&self, upload: Box<dyn BlobReader>) -> Result<Arc<dyn Site>, ArchiveError> {
        let limits = self.limits;
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        // The permit goes with the work: a request that is given up keeps it until its archive is done.
        let work = tokio::task::spawn_blocking(move || {
            let site = ArchivedSite::open(upload, limits);
            drop(permit);
            site
        });
        match work.await {
            Ok(site) => Ok(Arc::new(site?)),
            Err(_) => Err(broken().into()),
        }
    }
}
