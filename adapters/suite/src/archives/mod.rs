//! Unpacking uploaded sites: tar, tar.gz and zip, in memory and within bounds.
//!
//! What an archive says about itself is not believed: a file is read until it has one byte more than there is room for,
//! whatever its header says. What may be in a site is decided by [`SiteBuilder`] alone.

mod tar_files;
#[cfg(test)]
mod tests;
mod zip_files;

use std::io::Read;
use std::sync::Arc;

use async_trait::async_trait;
use core_domain::cli::{Limits, SiteBuilder, SiteError};
use core_domain::port::{SiteArchives, SiteFile};
use flate2::read::MultiGzDecoder;
use tokio::sync::Semaphore;

/// How many uploads are unpacked at once. Each may need as much memory as a site may have bytes.
const AT_ONCE: usize = 2;

/// How many entries an archive may have for each file a site may have: folders and what formats need besides.
const ENTRIES_PER_FILE: usize = 2;

/// What a tar is made of; no tar is smaller.
const TAR_BLOCK: usize = 512;

/// Unpacks sites off the async threads, two at a time; who comes later waits.
#[derive(Clone, Debug)]
pub struct UnpackArchives {
    limits: Limits,
    turns: Arc<Semaphore>,
}

impl UnpackArchives {
    /// Unpacks what keeps to these limits.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            turns: Arc::new(Semaphore::new(AT_ONCE)),
        }
    }
}

impl Default for UnpackArchives {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

#[async_trait]
impl SiteArchives for UnpackArchives {
    async fn unpack(&self, upload: Vec<u8>) -> Result<Vec<SiteFile>, SiteError> {
        let limits = self.limits;
        let turn = Arc::clone(&self.turns).acquire_owned().await;
        // The turn goes with the work: a request that is given up keeps it until its archive is done.
        let work = tokio::task::spawn_blocking(move || {
            let outcome = unpacked(&upload, limits);
            drop(turn);
            outcome
        });
        work.await.unwrap_or_else(|_| Err(broken()))
    }
}

/// The files of an upload in whichever format it is.
fn unpacked(upload: &[u8], limits: Limits) -> Result<Vec<SiteFile>, SiteError> {
    let bytes = upload.len() as u64;
    if bytes > limits.upload_bytes {
        let most = limits.upload_bytes;
        return Err(SiteError::TooLarge(format!(
            "the upload has more than {most} bytes"
        )));
    }
    let mut site = SiteBuilder::new(limits, bytes);
    if upload.starts_with(&[0x1f, 0x8b]) {
        tar_files::add(MultiGzDecoder::new(upload), limits, &mut site)?;
    } else if upload.starts_with(b"PK") {
        zip_files::add(upload, limits, &mut site)?;
    } else if upload.len() < TAR_BLOCK {
        return Err(SiteError::UnknownFormat);
    } else {
        tar_files::add(upload, limits, &mut site)?;
    }
    site.finish()
}

/// Counts entries, so that an archive of nothing but folders ends as well.
#[derive(Debug)]
struct EntriesLeft {
    left: usize,
    most: usize,
}

impl EntriesLeft {
    fn new(limits: Limits) -> Self {
        let most = limits.files.saturating_mul(ENTRIES_PER_FILE);
        Self { left: most, most }
    }

    fn take(&mut self) -> Result<(), SiteError> {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(SiteError::TooLarge(format!(
                "the archive has more than {} entries",
                self.most
            ))),
        }
    }
}

/// The content of a file, which must have as many bytes as the archive said. Never reads more than one byte too many.
fn content(file: impl Read, size: u64, site: &SiteBuilder) -> Result<Vec<u8>, SiteError> {
    let mut content = Vec::new();
    file.take(site.room() + 1)
        .read_to_end(&mut content)
        .map_err(|_| broken())?;
    // Too much of it is the builder's to refuse.
    let got = content.len() as u64;
    if got == size || got > site.room() {
        Ok(content)
    } else {
        Err(broken())
    }
}

fn path(bytes: &[u8]) -> Result<&str, SiteError> {
    std::str::from_utf8(bytes).map_err(|_| unfit("bad_path", "a path is not UTF-8"))
}

fn unfit(code: &'static str, what: &str) -> SiteError {
    SiteError::Unfit(code, what.to_owned())
}

fn broken() -> SiteError {
    unfit("broken_archive", "the archive is damaged or not complete")
}
