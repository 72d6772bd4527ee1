//! Builds archives byte by byte, so that each field of their headers can be wrong.

use std::io::Write;

use flate2::Crc;
use flate2::write::DeflateEncoder;

pub(crate) const TAR_BLOCK: usize = 512;

/// Returns a tar header with this path and type. The path is cut to 100 bytes.
pub(crate) fn tar_header(path: &[u8], kind: u8, size: u64) -> Vec<u8> {
    let mut header = vec![0; TAR_BLOCK];
    let length = path.len().min(100);
    header[..length].copy_from_slice(&path[..length]);
    header[100..107].copy_from_slice(b"0000644");
    header[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    header[156] = kind;
    header[257..265].copy_from_slice(b"ustar\x0000");
    write_checksum(&mut header);
    header
}

/// Corrects the checksum of a tar header.
pub(crate) fn write_checksum(header: &mut [u8]) {
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().copied().map(u32::from).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
}

/// Returns a tar entry: its header, and its content in whole blocks.
pub(crate) fn tar_entry(path: &[u8], kind: u8, content: &[u8]) -> Vec<u8> {
    let mut entry = tar_header(path, kind, content.len() as u64);
    entry.extend(content);
    entry.resize(entry.len().next_multiple_of(TAR_BLOCK), 0);
    entry
}

/// Returns a tar with these entries and an end mark.
pub(crate) fn tar_of(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut tar = entries.concat();
    tar.resize(tar.len() + 2 * TAR_BLOCK, 0);
    tar
}

/// Returns a record of extended attributes (PAX), with its own length in front.
pub(crate) fn pax_record(key: &str, value: &[u8]) -> Vec<u8> {
    let rest = key.len() + value.len() + 3;
    let mut length = rest;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    let mut record = format!("{length} {key}=").into_bytes();
    record.extend(value);
    record.push(b'\n');
    record
}

/// An entry of a zip. The optional fields are written instead of the correct values.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ZipEntry<'a> {
    pub(crate) path: &'a [u8],
    pub(crate) content: &'a [u8],
    pub(crate) is_deflated: bool,
    pub(crate) flags: u16,
    pub(crate) crc: Option<u32>,
    pub(crate) size: Option<u32>,
    pub(crate) packed_size: Option<u32>,
    /// Whether the sizes are in a ZIP64 field.
    pub(crate) is_zip64: bool,
    /// Whether the sizes follow the content, in a data descriptor.
    pub(crate) has_descriptor: bool,
}

/// A zip that is being written.
#[derive(Debug, Default)]
pub(crate) struct RawZip {
    bytes: Vec<u8>,
    directory: Vec<u8>,
    count: u16,
}

impl RawZip {
    /// Writes an entry and adds it to the directory.
    pub(crate) fn add(&mut self, entry: ZipEntry<'_>) -> &mut Self {
        let at = self.bytes.len();
        let (packed, sizes) = pack(&entry);
        let local = match entry.has_descriptor {
            true => [0; 3],
            false => sizes,
        };
        self.bytes.extend(b"PK\x03\x04\x14\0");
        write_fields(&mut self.bytes, &entry, local);
        self.bytes.extend(packed);
        if entry.has_descriptor {
            self.bytes.extend(b"PK\x07\x08");
            self.bytes
                .extend(sizes.map(u32::to_le_bytes).as_flattened());
        }
        self.list(entry, u32::try_from(at).unwrap())
    }

    /// Adds an entry to the directory whose header is at this offset, without writing it.
    pub(crate) fn list(&mut self, entry: ZipEntry<'_>, at: u32) -> &mut Self {
        let (_, sizes) = pack(&entry);
        self.directory.extend(b"PK\x01\x02\x14\x03\x14\0");
        let start = self.directory.len();
        write_fields(&mut self.directory, &entry, sizes);
        // Comment, disk, attributes and offset are between the lengths and the path.
        let more = [&[0; 10][..], &at.to_le_bytes()].concat();
        let lengths_end = start + 24;
        self.directory.splice(lengths_end..lengths_end, more);
        self.count += 1;
        self
    }

    /// Returns the number of bytes before the directory.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let (count, start) = (self.count.to_le_bytes(), self.bytes.len());
        let size = u32::try_from(self.directory.len()).unwrap().to_le_bytes();
        let start = u32::try_from(start).unwrap().to_le_bytes();
        [
            &self.bytes[..],
            &self.directory,
            b"PK\x05\x06\0\0\0\0",
            &count,
            &count,
            &size,
            &start,
            &[0; 2],
        ]
        .concat()
    }

    /// Returns the zip with an end in ZIP64 that declares this number of entries and size of the directory.
    pub(crate) fn finish_as_zip64(&mut self, count: u64, size: u64) -> Vec<u8> {
        let start = (self.bytes.len() as u64).to_le_bytes();
        let end = ((self.bytes.len() + self.directory.len()) as u64).to_le_bytes();
        [
            &self.bytes[..],
            &self.directory,
            b"PK\x06\x06",
            &44_u64.to_le_bytes(),
            &[45, 0, 45, 0],
            &[0; 8],
            &count.to_le_bytes(),
            &count.to_le_bytes(),
            &size.to_le_bytes(),
            &start,
            b"PK\x06\x07\0\0\0\0",
            &end,
            &1_u32.to_le_bytes(),
            b"PK\x05\x06\0\0\0\0",
            &[0xff; 12],
            &[0; 2],
        ]
        .concat()
    }
}

/// Returns the stored bytes of the entry, and its CRC, packed size and size.
fn pack(entry: &ZipEntry<'_>) -> (Vec<u8>, [u32; 3]) {
    let packed = match entry.is_deflated {
        true => {
            let mut encoder = DeflateEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(entry.content).unwrap();
            encoder.finish().unwrap()
        }
        false => entry.content.to_vec(),
    };
    let mut crc = Crc::new();
    crc.update(entry.content);
    let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap();
    let sizes = [
        entry.crc.unwrap_or(crc.sum()),
        entry.packed_size.unwrap_or(length(&packed)),
        entry.size.unwrap_or(length(entry.content)),
    ];
    (packed, sizes)
}

/// Writes the fields that both headers of an entry have, from the flags on: 24 bytes, the path and the ZIP64 field.
fn write_fields(to: &mut Vec<u8>, entry: &ZipEntry<'_>, sizes: [u32; 3]) {
    let flags = entry.flags | if entry.has_descriptor { 8 } else { 0 };
    let [crc, packed, size] = sizes;
    let mut extra = Vec::new();
    let shown = match entry.is_zip64 {
        true => {
            extra.extend([1, 0, 16, 0]);
            extra.extend(u64::from(size).to_le_bytes());
            extra.extend(u64::from(packed).to_le_bytes());
            [crc, u32::MAX, u32::MAX]
        }
        false => sizes,
    };
    to.extend(flags.to_le_bytes());
    to.extend([if entry.is_deflated { 8 } else { 0 }, 0]);
    // The first of January 1980.
    to.extend([0, 0, 0x21, 0]);
    to.extend(shown.map(u32::to_le_bytes).as_flattened());
    for length in [entry.path.len(), extra.len()] {
        to.extend(u16::try_from(length).unwrap().to_le_bytes());
    }
    to.extend(entry.path);
    to.extend(extra);
}

/// Returns a zip with these files. Those of more than 64 bytes are compressed.
pub(crate) fn zip_of<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut zip = RawZip::default();
    for (path, content) in files {
        zip.add(ZipEntry {
            path: path.as_bytes(),
            content,
            is_deflated: content.len() > 64,
            ..ZipEntry::default()
        });
    }
    zip.finish()
}
