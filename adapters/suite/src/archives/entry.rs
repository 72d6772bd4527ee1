//! What every format of archives has: entries, their bounds, and what is wrong with them.

use std::io::{self, Read};

use core_domain::cli::{Limits, SiteError};

/// How many entries an archive may have for each file a site may have: folders and what formats need besides.
pub(super) const ENTRIES_PER_FILE: usize = 2;

/// What a tar is made of; no tar is smaller.
pub(super) const TAR_BLOCK: usize = 512;

/// How much of an archive is in memory at a time, in bytes.
pub(super) const BUFFER: usize = 64 * 1024;

/// What an archive holds.
pub(super) enum Entry<'a> {
    Folder(&'a str),
    File {
        path: &'a str,
        /// What the archive says of it.
        size: u64,
        content: &'a mut dyn Read,
    },
}

/// Why a walk through an archive ended early.
#[derive(Debug)]
pub(super) enum WalkError {
    /// The archive is none, or is refused.
    Refused(SiteError),
    /// Whoever was given an entry failed.
    Visitor(io::Error),
}

impl From<SiteError> for WalkError {
    fn from(error: SiteError) -> Self {
        Self::Refused(error)
    }
}

pub(super) type Visit<'a> = dyn FnMut(Entry<'_>) -> Result<(), WalkError> + 'a;

/// How many entries an archive may have.
pub(super) const fn max_entries(limits: Limits) -> usize {
    limits.files.saturating_mul(ENTRIES_PER_FILE)
}

pub(super) fn too_many_entries(limits: Limits) -> SiteError {
    let max = max_entries(limits);
    SiteError::TooLarge(format!("the archive has more than {max} entries"))
}

pub(super) fn path(bytes: &[u8]) -> Result<&str, SiteError> {
    std::str::from_utf8(bytes).map_err(|_| unfit("bad_path", "a path is not UTF-8"))
}

pub(super) fn unfit(code: &'static str, what: &str) -> SiteError {
    SiteError::Unfit(code, what.to_owned())
}

pub(super) fn broken() -> SiteError {
    unfit("broken_archive", "the archive is damaged or not complete")
}
