//! Reads the entries of a zip.
//!
//! The directory of a zip is read entry by entry and never as a whole, because it can have many entries with long
//! names.

use std::collections::BTreeMap;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;

use core_domain::cli::{SiteError, SiteLimits};
use zip::read::{ArchiveOffset, Config, ZipFileEntry};
use zip::unstable::read::ZipIterable;
use zip::{CompressionMethod, ZipReadOptions};

use super::entry::{
    BUFFER, Entry, Visit, WalkError, damaged_archive, invalid_archive, max_entries, path,
    too_many_entries,
};

/// The signature of the record at the end of a zip. The record may be followed by a comment whose length it states.
const END_MARK: &[u8] = b"PK\x05\x06";
const END_SIZE: usize = 22;

/// The bits of a Unix mode that hold the file type.
const FILE_TYPE: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;

/// Visits the entries of a zip of `bytes` bytes.
pub(super) fn walk(
    upload: &mut (impl Read + Seek),
    bytes: u64,
    limits: SiteLimits,
    visit: &mut Visit<'_>,
) -> Result<(), WalkError> {
    let tail = tail(upload, bytes).map_err(|_| damaged_archive())?;
    if !has_no_trailing_data(&tail) {
        return Err(damaged_archive().into());
    }
    let config = Config {
        archive_offset: ArchiveOffset::Known(0),
    };
    let upload = BufReader::with_capacity(BUFFER, upload);
    let mut archive = ZipIterable::try_new(upload, config).map_err(|_| damaged_archive())?;
    if archive.len() > max_entries(limits) {
        return Err(too_many_entries(limits).into());
    }
    let entries = archive.files().map_err(|_| damaged_archive())?;
    let mut ranges = OccupiedRanges::default();
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(|_| damaged_archive())?;
        visit_entry(entry, entries.reader_mut(), &mut ranges, visit)?;
    }
    Ok(())
}

/// The byte ranges of an archive that belong to its files. A byte belongs to one file at most: files with shared bytes
/// unpack to much more than their archive.
#[derive(Debug, Default)]
struct OccupiedRanges {
    /// The end of each range, by its start.
    ends: BTreeMap<u64, u64>,
    /// The start of the directory, which follows the files.
    directory: Option<u64>,
}

impl OccupiedRanges {
    /// Adds the range of the file with this header in the directory. Returns whether the range is free.
    fn insert(&mut self, range: Range<u64>, directory_header: u64) -> bool {
        let directory = *self.directory.get_or_insert(directory_header);
        let before = self.ends.range(..range.end).next_back();
        let is_free = before.is_none_or(|(_, end)| *end <= range.start);
        self.ends.insert(range.start, range.end);
        is_free && range.end <= directory
    }
}

/// Returns the end of the upload: as many bytes as the last record of a zip can have.
fn tail(upload: &mut (impl Read + Seek), bytes: u64) -> std::io::Result<Vec<u8>> {
    let longest = (END_SIZE + usize::from(u16::MAX)) as u64;
    upload.seek(SeekFrom::Start(bytes.saturating_sub(longest)))?;
    let mut tail = Vec::new();
    upload.take(longest).read_to_end(&mut tail)?;
    Ok(tail)
}

/// Returns whether no data follows the end of the archive.
fn has_no_trailing_data(tail: &[u8]) -> bool {
    let Some(last) = tail.len().checked_sub(END_SIZE) else {
        return false;
    };
    (0..=last).rev().any(|at| {
        let record = &tail[at..at + END_SIZE];
        let comment = usize::from(u16::from_le_bytes([record[20], record[21]]));
        record.starts_with(END_MARK) && at + END_SIZE + comment == tail.len()
    })
}

fn visit_entry(
    entry: ZipFileEntry<'_>,
    upload: &mut (impl Read + Seek),
    ranges: &mut OccupiedRanges,
    visit: &mut Visit<'_>,
) -> Result<(), WalkError> {
    let path = path(entry.name_raw())?.to_owned();
    check_kind(&entry, &path)?;
    if path.ends_with('/') {
        return visit(Entry::Folder(&path));
    }
    let packed = entry.compression();
    if !matches!(
        packed,
        CompressionMethod::Stored | CompressionMethod::Deflated
    ) {
        let what = format!("{path:?} uses an unsupported compression method");
        return Err(invalid_archive("unknown_compression", &what).into());
    }
    let size = entry.size();
    let content = entry.with_reader(upload, ZipReadOptions::new());
    let mut content = content.map_err(|_| damaged_archive())?;
    let start = content.data_start().ok_or_else(damaged_archive)?;
    let end = start.checked_add(content.compressed_size());
    let range = content.header_start()..end.ok_or_else(damaged_archive)?;
    if !ranges.insert(range, content.central_header_start()) {
        let what = format!("{path:?} shares bytes of the archive with another entry");
        return Err(invalid_archive("overlapping_entries", &what).into());
    }
    visit(Entry::File {
        path: &path,
        size,
        content: &mut content,
    })
}

fn check_kind(entry: &ZipFileEntry<'_>, path: &str) -> Result<(), SiteError> {
    if entry.encrypted() {
        return Err(invalid_archive(
            "encrypted",
            &format!("{path:?} is encrypted"),
        ));
    }
    match entry.unix_mode().unwrap_or_default() & FILE_TYPE {
        SYMLINK => Err(invalid_archive("symlink", &format!("{path:?} is a link"))),
        0 | FOLDER | REGULAR => Ok(()),
        _ => Err(invalid_archive(
            "device",
            &format!("{path:?} is not an ordinary file"),
        )),
    }
}
