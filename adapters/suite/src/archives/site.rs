//! A site stored in its archive: checked once, then read as often as needed.

use std::fmt;
use std::io::{self, Read, SeekFrom};
use std::sync::{Mutex, PoisonError};

use core_domain::cli::{SiteBuilder, SiteError, SiteFile, SiteLimits};
use core_domain::port::{ArchiveError, BlobReader, Cause, FileVisitor, Site};
use sha2::{Digest, Sha256};

use super::entry::{BUFFER, Entry, WalkError, damaged_archive};
use super::source::Source;
use super::walk::walk;

/// A site whose file contents stay in the archive.
pub(super) struct ArchivedSite {
    upload: Mutex<Box<dyn BlobReader>>,
    limits: SiteLimits,
    /// The files in the order of the archive.
    files: Vec<SiteFile>,
}

impl ArchivedSite {
    /// Reads the whole archive and checks every entry, and that the whole is a site.
    pub(super) fn open(
        mut upload: Box<dyn BlobReader>,
        limits: SiteLimits,
    ) -> Result<Self, ArchiveError> {
        let bytes = upload.seek(SeekFrom::End(0)).map_err(unreadable)?;
        let builder = SiteBuilder::new(limits, bytes);
        let files = list(upload.as_mut(), builder, limits)?.finish()?;
        Ok(Self {
            upload: Mutex::new(upload),
            limits,
            files,
        })
    }

    /// Reads the whole archive and checks every entry. The archive may contain any of the files of a site. Its plan
    /// declares the size of every file, so the ratio of the unpacked size to that of the upload is not limited.
    pub(super) fn open_part(
        mut upload: Box<dyn BlobReader>,
        limits: SiteLimits,
    ) -> Result<Self, ArchiveError> {
        let is_empty = upload.seek(SeekFrom::End(0)).map_err(unreadable)? == 0;
        let files = match is_empty {
            true => Vec::new(),
            false => {
                let builder = SiteBuilder::new(limits, u64::MAX);
                list(upload.as_mut(), builder, limits)?.finish_part()
            }
        };
        Ok(Self {
            upload: Mutex::new(upload),
            limits,
            files,
        })
    }
}

impl Site for ArchivedSite {
    fn files(&self) -> &[SiteFile] {
        &self.files
    }

    fn read(&self, visitor: &mut FileVisitor<'_>) -> io::Result<()> {
        if self.files.is_empty() {
            return Ok(());
        }
        let mut upload = self.upload.lock().unwrap_or_else(PoisonError::into_inner);
        let mut source = Source::new(upload.as_mut());
        let mut files = self.files.iter();
        let outcome = walk(&mut source, self.limits, &mut |entry| {
            let Entry::File { size, content, .. } = entry else {
                return Ok(());
            };
            let file = files.next().filter(|file| file.size == size);
            let file = file.ok_or_else(damaged_archive)?;
            visitor(file, &mut content.take(size)).map_err(WalkError::Visitor)
        });
        match (outcome, source.failure()) {
            (Err(WalkError::Visitor(error)), _) | (Err(_), Some(error)) => Err(error),
            (Err(WalkError::Refused(error)), None) => Err(io::Error::other(error)),
            (Ok(()), _) => Ok(()),
        }
    }
}

impl fmt::Debug for ArchivedSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchivedSite")
            .field("files", &self.files.len())
            .finish_non_exhaustive()
    }
}

fn unreadable(error: io::Error) -> ArchiveError {
    ArchiveError::Unreadable(Cause::new(error))
}

/// Adds every entry of an archive to the builder of a site.
fn list(
    upload: &mut dyn BlobReader,
    mut site: SiteBuilder,
    limits: SiteLimits,
) -> Result<SiteBuilder, ArchiveError> {
    let mut source = Source::new(upload);
    let mut buffer = vec![0; BUFFER];
    let outcome = walk(&mut source, limits, &mut |entry| {
        add(entry, &mut site, &mut buffer).map_err(WalkError::Refused)
    });
    match (outcome, source.failure()) {
        (Err(WalkError::Visitor(error)), _) | (Err(_), Some(error)) => Err(unreadable(error)),
        (Err(WalkError::Refused(error)), None) => Err(error.into()),
        (Ok(()), _) => Ok(site),
    }
}

fn add(entry: Entry<'_>, site: &mut SiteBuilder, buffer: &mut [u8]) -> Result<(), SiteError> {
    let (path, size, content) = match entry {
        Entry::Folder(path) => return site.folder(path),
        Entry::File {
            path,
            size,
            content,
        } => (path, size, content),
    };
    site.check(path, size)?;
    // One byte above the limit is enough to detect that the file is too large.
    let mut content = content.take(site.remaining_file_bytes() + 1);
    let (found, digest) = measure(&mut content, buffer).map_err(|_| damaged_archive())?;
    if found != size && found <= site.remaining_file_bytes() {
        return Err(damaged_archive());
    }
    site.add_file(path, found, digest)
}

/// Returns the length in bytes and the SHA-256 of the content.
fn measure(content: &mut dyn Read, buffer: &mut [u8]) -> io::Result<(u64, [u8; 32])> {
    let mut hash = Sha256::new();
    let mut bytes = 0;
    loop {
        match content.read(buffer) {
            Ok(0) => return Ok((bytes, hash.finalize().into())),
            Ok(read) => {
                hash.update(&buffer[..read]);
                bytes += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
