//! Files of a zip.
//!
//! The directory of a zip is read as a whole before the first file, so how many entries it can have is counted first.

use std::io::Cursor;

use core_domain::cli::{Limits, SiteBuilder, SiteError};
use zip::read::{ArchiveOffset, Config, ZipFileEntry};
use zip::{CompressionMethod, ZipArchive, ZipReadOptions};

use super::{EntriesLeft, broken, content, path, unfit};

/// The mark and the size of the record a zip ends with; a comment of a length it tells may follow.
const END_MARK: &[u8] = b"PK\x05\x06";
const END_SIZE: usize = 22;

/// What every entry of the directory begins with.
const ENTRY_MARK: &[u8] = b"PK\x01\x02";

/// The bits of a Unix mode that tell what a file is.
const FILE_TYPE: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;
const ORDINARY: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;

/// Adds the files of a zip to a site.
pub(super) fn add(upload: &[u8], limits: Limits, site: &mut SiteBuilder) -> Result<(), SiteError> {
    if !ends_with_its_end(upload) {
        return Err(broken());
    }
    count_entries(upload, limits)?;
    let config = Config {
        archive_offset: ArchiveOffset::Known(0),
    };
    let archive = ZipArchive::with_config(config, Cursor::new(upload)).map_err(|_| broken())?;
    if archive.has_duplicate_names() {
        return Err(unfit("duplicate_name", "a name is there twice"));
    }
    for index in 0..archive.len() {
        let entry = archive.by_index_data(index).map_err(|_| broken())?;
        add_entry(entry, upload, site)?;
    }
    Ok(())
}

/// Whichever directory of the upload is believed, it has no more entries than there are marks of them.
fn count_entries(upload: &[u8], limits: Limits) -> Result<(), SiteError> {
    let mut left = EntriesLeft::new(limits);
    upload
        .windows(ENTRY_MARK.len())
        .filter(|bytes| *bytes == ENTRY_MARK)
        .try_for_each(|_| left.take())
}

/// Tells whether nothing follows the end of the archive.
fn ends_with_its_end(upload: &[u8]) -> bool {
    let Some(last) = upload.len().checked_sub(END_SIZE) else {
        return false;
    };
    let first = last.saturating_sub(usize::from(u16::MAX));
    (first..=last).rev().any(|at| {
        let record = &upload[at..at + END_SIZE];
        let comment = usize::from(u16::from_le_bytes([record[20], record[21]]));
        record.starts_with(END_MARK) && at + END_SIZE + comment == upload.len()
    })
}

fn add_entry(
    entry: ZipFileEntry<'_>,
    upload: &[u8],
    site: &mut SiteBuilder,
) -> Result<(), SiteError> {
    let name = path(entry.name_raw())?.to_owned();
    if entry.encrypted() {
        return Err(unfit("encrypted", &format!("{name:?} is encrypted")));
    }
    let kind = entry.unix_mode().unwrap_or_default() & FILE_TYPE;
    match kind {
        SYMLINK => return Err(unfit("symlink", &format!("{name:?} is a link"))),
        0 | FOLDER | ORDINARY => {}
        _ => return Err(unfit("device", &format!("{name:?} is no ordinary file"))),
    }
    if name.ends_with('/') {
        return site.folder(&name);
    }
    let packed = entry.compression();
    if !matches!(
        packed,
        CompressionMethod::Stored | CompressionMethod::Deflated
    ) {
        let what = format!("{name:?} is packed in a way that is not understood");
        return Err(unfit("unknown_compression", &what));
    }
    let size = entry.size();
    site.check(&name, size)?;
    let mut reader = Cursor::new(upload);
    let file = entry.with_reader(&mut reader, ZipReadOptions::new());
    let content = content(file.map_err(|_| broken())?, size, site)?;
    site.file(&name, content)
}
