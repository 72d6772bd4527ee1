//! Types that all archive formats share: entries, their limits, and errors.

use std::io::{self, Read};

use core_domain::cli::{SiteError, SiteLimits};

/// Maximum number of archive entries for each file that a site may have. The surplus leaves room for folders and for
/// entries that a format needs in addition.
pub(super) const ENTRIES_PER_FILE: usize = 2;

/// The block size of a tar in bytes. Every tar has at least one block.
pub(super) const TAR_BLOCK: usize = 512;

/// The buffer size for reading archives, in bytes.
pub(super) const BUFFER: usize = 64 * 1024;

/// One entry of an archive.
pub(super) enum Entry<'a> {
    Folder(&'a str),
    File {
        path: &'a str,
        /// The size in bytes that the archive declares.
        size: u64,
        content: &'a mut dyn Read,
    },
}

/// Why a walk through an archive ended early.
#[derive(Debug)]
pub(super) enum WalkError {
    /// The upload is not an archive, or its contents are not allowed.
    Refused(SiteError),
    /// The visitor of an entry failed.
    Visitor(io::Error),
}

impl From<SiteError> for WalkError {
    fn from(error: SiteError) -> Self {
        Self::Refused(error)
    }
}

pub(super) type Visit<'a> = dyn FnMut(Entry<'_>) -> Result<(), WalkError> + 'a;

/// The maximum number of entries of an archive.
pub(super) const fn max_entries(limits: SiteLimits) -> usize {
    limits.files.saturating_mul(ENTRIES_PER_FILE)
}

pub(super) fn too_many_entries(limits: SiteLimits) -> SiteError {
    let max = max_entries(limits);
    SiteError::TooLarge(format!("the archive has more than {max} entries"))
}

pub(super) fn path(bytes: &[u8]) -> Result<&str, SiteError> {
    std::str::from_utf8(bytes).map_err(|_| invalid_archive("bad_path", "a path is not UTF-8"))
}

pub(super) fn invalid_archive(code: &'static str, what: &str) -> SiteError {
    SiteError::NotAllowed(code, what.to_owned())
}

pub(super) fn damaged_archive() -> SiteError {
    invalid_archive("broken_archive", "the archive is damaged or not complete")
}
