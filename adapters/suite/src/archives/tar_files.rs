//! Reads the entries of a tar, compressed or not.
//!
//! The tar crate reads extension entries (long names, attributes) at any size. They are therefore read here as raw
//! entries, within limits.

use std::io::{self, Read};

use core_domain::cli::{SiteError, SiteLimits};
use tar::{Archive, Entry, EntryType};

use super::entry::{
    Entry as SiteEntry, TAR_BLOCK, Visit, WalkError, damaged_archive, invalid_archive, max_entries,
    path, too_many_entries,
};

/// The number of bytes that an entry may need besides its content: header, padding, a long name.
const BYTES_PER_ENTRY: u64 = 4_096;

/// The number of bytes allowed besides the entries: the end mark, padded to a record.
const BYTES_AROUND: u64 = 2 * 1024 * 1024;

/// Maximum size of an entry's extension data (long name or attributes), in bytes.
const MAX_ATTRIBUTES: u64 = 1024 * 1024;

/// Visits the entries of a tar.
pub(super) fn walk(
    tar: impl Read,
    limits: SiteLimits,
    visit: &mut Visit<'_>,
) -> Result<(), WalkError> {
    let entries = (limits.files as u64).saturating_mul(BYTES_PER_ENTRY);
    let max = limits.unpacked_bytes.saturating_add(entries) + BYTES_AROUND;
    let mut stream = Stream {
        tar,
        left: max,
        cut: false,
        zeros: 0,
    };
    let outcome = walk_entries(&mut stream, limits, visit)
        .and_then(|()| stream.end().map_err(WalkError::Refused));
    if stream.cut {
        let what = format!("the unpacked archive has more than {max} bytes");
        return Err(SiteError::TooLarge(what).into());
    }
    outcome
}

fn walk_entries<R: Read>(
    stream: &mut Stream<R>,
    limits: SiteLimits,
    visit: &mut Visit<'_>,
) -> Result<(), WalkError> {
    let mut archive = Archive::new(stream);
    let mut next = ExtensionData::default();
    let mut entries = 0;
    let mut is_first = true;
    for entry in archive.entries().map_err(|_| damaged_archive())?.raw(true) {
        let mut entry = entry.map_err(|error| header_error(&error, is_first))?;
        is_first = false;
        match entry.header().entry_type() {
            EntryType::GNULongName => next.path = Some(long_name(&mut entry)?),
            EntryType::XHeader => next.read(&attributes(&mut entry)?)?,
            EntryType::GNULongLink | EntryType::XGlobalHeader => {}
            kind => {
                entries += 1;
                if entries > max_entries(limits) {
                    return Err(too_many_entries(limits).into());
                }
                visit_entry(kind, &mut entry, std::mem::take(&mut next), visit)?;
            }
        }
    }
    if next == ExtensionData::default() {
        Ok(())
    } else {
        Err(damaged_archive().into())
    }
}

/// Returns the error for an unreadable header: at the start the upload is not a tar, later it is a damaged tar.
fn header_error(error: &io::Error, is_first: bool) -> SiteError {
    if is_first && error.kind() == io::ErrorKind::Other {
        SiteError::UnknownFormat
    } else {
        damaged_archive()
    }
}

fn visit_entry<R: Read>(
    kind: EntryType,
    entry: &mut Entry<'_, R>,
    described: ExtensionData,
    visit: &mut Visit<'_>,
) -> Result<(), WalkError> {
    let size = entry.size();
    if described.size.is_some_and(|told| told != size) {
        return Err(damaged_archive().into());
    }
    let name = match described.path {
        Some(name) => name,
        None => entry.path_bytes().into_owned(),
    };
    let path = path(&name)?;
    match kind {
        EntryType::Directory => visit(SiteEntry::Folder(path)),
        // Old archives mark folders only by a slash at the end of the name.
        EntryType::Regular if path.ends_with('/') && size == 0 => visit(SiteEntry::Folder(path)),
        EntryType::Regular | EntryType::Continuous => visit(SiteEntry::File {
            path,
            size,
            content: entry,
        }),
        EntryType::Symlink => Err(unsupported_entry("symlink", path)),
        EntryType::Link => Err(unsupported_entry("hard_link", path)),
        EntryType::Char | EntryType::Block | EntryType::Fifo => {
            Err(unsupported_entry("device", path))
        }
        EntryType::GNUSparse => Err(unsupported_entry("sparse_file", path)),
        _ => Err(unsupported_entry("special_file", path)),
    }
}

fn unsupported_entry(code: &'static str, path: &str) -> WalkError {
    let what = format!("{path:?} is neither an ordinary file nor a folder");
    invalid_archive(code, &what).into()
}

/// The path and the size that extension entries declare for the next entry.
#[derive(Debug, Default, PartialEq, Eq)]
struct ExtensionData {
    path: Option<Vec<u8>>,
    size: Option<u64>,
}

impl ExtensionData {
    fn read(&mut self, mut attributes: &[u8]) -> Result<(), SiteError> {
        while !attributes.is_empty() {
            let (attribute, next) = split_attribute(attributes).ok_or_else(damaged_archive)?;
            attributes = next;
            match attribute.key {
                b"path" => self.path = Some(attribute.value.to_owned()),
                b"size" => {
                    let size = std::str::from_utf8(attribute.value).ok();
                    let size = size.and_then(|text| text.parse().ok());
                    self.size = Some(size.ok_or_else(damaged_archive)?);
                }
                key if key.starts_with(b"GNU.sparse") => {
                    return Err(invalid_archive("sparse_file", "an entry is a sparse file"));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// An extended attribute of an entry (PAX).
struct Attribute<'a> {
    key: &'a [u8],
    value: &'a [u8],
}

/// Splits the first attribute off. Its record is its own length in decimal, a blank, the key, an equals sign, the value
/// and a line end. A value may contain line ends: those of macOS are binary.
fn split_attribute(records: &[u8]) -> Option<(Attribute<'_>, &[u8])> {
    let blank = records.iter().position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&records[..blank]).ok()?.parse().ok()?;
    let (record, next) = records.split_at_checked(length)?;
    let record = record.get(blank + 1..)?.strip_suffix(b"\n")?;
    let equals = record.iter().position(|byte| *byte == b'=')?;
    let (key, value) = (&record[..equals], &record[equals + 1..]);
    Some((Attribute { key, value }, next))
}

fn long_name<R: Read>(entry: &mut Entry<'_, R>) -> Result<Vec<u8>, SiteError> {
    let mut name = attributes(entry)?;
    while name.last() == Some(&0) {
        name.pop();
    }
    Ok(name)
}

fn attributes<R: Read>(entry: &mut Entry<'_, R>) -> Result<Vec<u8>, SiteError> {
    let size = entry.size();
    if size > MAX_ATTRIBUTES {
        return Err(SiteError::TooLarge(format!(
            "the name or attributes of an entry have more than {MAX_ATTRIBUTES} bytes"
        )));
    }
    let mut attributes = Vec::new();
    entry
        .read_to_end(&mut attributes)
        .map_err(|_| damaged_archive())?;
    if attributes.len() as u64 == size {
        Ok(attributes)
    } else {
        Err(damaged_archive())
    }
}

/// A tar stream that fails after a number of bytes, and counts the zero bytes at its end.
#[derive(Debug)]
struct Stream<R> {
    tar: R,
    left: u64,
    /// Whether the limit was reached before the stream ended.
    cut: bool,
    zeros: u64,
}

impl<R: Read> Stream<R> {
    /// Checks that the tar ends with a block of zeros, and that only zeros follow its end.
    fn end(&mut self) -> Result<(), SiteError> {
        let mut buffer = [0_u8; 8_192];
        loop {
            let read = match self.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                outcome => outcome.map_err(|_| damaged_archive())?,
            };
            if read == 0 {
                break;
            }
            if buffer[..read].iter().any(|byte| *byte != 0) {
                return Err(invalid_archive(
                    "trailing_data",
                    "data follows the end of the archive",
                ));
            }
        }
        if self.zeros >= TAR_BLOCK as u64 {
            Ok(())
        } else {
            Err(damaged_archive())
        }
    }
}

impl<R: Read> Read for Stream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() {
            self.cut = true;
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        let room = usize::try_from(self.left).unwrap_or(usize::MAX);
        let room = room.min(buffer.len());
        let read = self.tar.read(&mut buffer[..room])?;
        self.left -= read as u64;
        let tail = buffer[..read].iter().rev().take_while(|byte| **byte == 0);
        let tail = tail.count();
        self.zeros = if tail == read {
            self.zeros + tail as u64
        } else {
            tail as u64
        };
        Ok(read)
    }
}
