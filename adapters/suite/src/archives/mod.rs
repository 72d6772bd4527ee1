//! Reads uploaded sites: tar, tar.gz and zip, from a file and within limits.
//!
//! The sizes that an archive declares are not trusted. A file is read until it exceeds the space left by one byte,
//! whatever its header says. Which files a site may contain is decided by
//! [`SiteBuilder`](core_domain::cli::SiteBuilder) alone. Contents are read in pieces of 64 KiB; only the names in an
//! archive stay in memory. The names are limited too: an archive never needs more than 32 MiB of memory, and two at the
//! same time not more than 64 MiB.

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
use core_domain::cli::{SiteLimits, SiteManifest};
use core_domain::port::{ArchiveError, BlobReader, Cause, PartialSite, Site, SiteArchives};
use core_http::cli::UploadLimits;
use tokio::sync::Semaphore;

use self::entry::damaged_archive;
use self::site::ArchivedSite;

/// Opens uploaded archives on blocking threads, outside the async runtime's workers. `cli.uploads.permits` limits how
/// many are opened at the same time; the others wait.
#[derive(Clone, Debug)]
pub struct UnpackArchives {
    limits: SiteLimits,
    permits: Arc<Semaphore>,
}

impl UnpackArchives {
    /// Creates a reader that accepts archives within these limits.
    #[must_use]
    pub fn new(limits: SiteLimits) -> Self {
        Self {
            limits,
            permits: Arc::new(Semaphore::new(UploadLimits::default().permits)),
        }
    }

    /// Sets how many uploads are opened at the same time. Default: 2.
    #[must_use]
    pub fn with_permits(mut self, permits: usize) -> Self {
        self.permits = Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)));
        self
    }
}

impl Default for UnpackArchives {
    fn default() -> Self {
        Self::new(SiteLimits::default())
    }
}

#[async_trait]
impl SiteArchives for UnpackArchives {
    async fn open(&self, upload: Box<dyn BlobReader>) -> Result<Arc<dyn Site>, ArchiveError> {
        let limits = self.limits;
        self.run(move || Ok(Arc::new(ArchivedSite::open(upload, limits)?) as Arc<dyn Site>))
            .await
    }

    async fn open_part(
        &self,
        upload: Box<dyn BlobReader>,
        mut manifest: Box<dyn BlobReader>,
    ) -> Result<Arc<dyn Site>, ArchiveError> {
        let limits = self.limits;
        let open = move || {
            let mut json = Vec::new();
            let read = manifest.read_to_end(&mut json);
            let manifest = read.and_then(|_| SiteManifest::from_json(&json));
            let manifest = manifest.map_err(|error| ArchiveError::Unreadable(Cause::new(error)))?;
            let upload = ArchivedSite::open_part(upload, limits)?;
            Ok(Arc::new(PartialSite::new(manifest, Arc::new(upload))?) as Arc<dyn Site>)
        };
        self.run(open).await
    }
}

impl UnpackArchives {
    /// Runs work on a blocking thread, after a permit is free.
    async fn run<F>(&self, work: F) -> Result<Arc<dyn Site>, ArchiveError>
    where
        F: FnOnce() -> Result<Arc<dyn Site>, ArchiveError> + Send + 'static,
    {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        // The work owns the permit: if the request is dropped, the permit is still released only after the archive is
        // done.
        let opened = tokio::task::spawn_blocking(move || {
            let site = work();
            drop(permit);
            site
        });
        match opened.await {
            Ok(site) => site,
            Err(_) => Err(damaged_archive().into()),
        }
    }
}
