//! Objects of a bucket and their files. A file starts with a line of JSON that describes the object; the content
//! follows.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use core_domain::kernel::{Timestamp, hex};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::data_dir::{StagingPath, is_absence};
use crate::error::{LocalError, Result};

/// Maximum length of a key, in bytes.
const MAX_KEY: usize = 1024;
/// Maximum length of the metadata of an object, names and values together, in bytes.
const MAX_METADATA: usize = 8192;
/// Number of bytes that a metadata pair counts in addition to its name and value. This is roughly its memory overhead
/// in a list.
const PAIR_BYTES: usize = 32;
/// Maximum length of the first line of a file, in bytes. JSON encodes each byte of key and metadata in at most six
/// bytes.
const MAX_HEAD: u64 = 64 * 1024;

/// The description of an object, without its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectInfo {
    /// The key of the object.
    pub key: String,
    /// The content type that the writer gave.
    pub content_type: String,
    /// SHA-256 of the content in hexadecimal.
    pub etag: String,
    /// Length of the content in bytes.
    pub size: u64,
    /// The time at which the object was stored; the epoch for objects of older versions, which did not record it.
    #[serde(default = "epoch")]
    pub uploaded_at: Timestamp,
    /// Other HTTP metadata that the writer gave, such as `cacheControl`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub http: BTreeMap<String, String>,
    /// Custom metadata that the writer gave.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub custom: BTreeMap<String, String>,
}

/// The metadata of an object that a writer gives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectMetadata {
    /// The content type of the object.
    pub content_type: String,
    /// Other HTTP metadata, see [`ObjectInfo::http`].
    pub http: BTreeMap<String, String>,
    /// Custom metadata, see [`ObjectInfo::custom`].
    pub custom: BTreeMap<String, String>,
}

/// An object with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// The description of the object.
    pub info: ObjectInfo,
    /// The content of the object, in bytes.
    pub content: Vec<u8>,
}

impl ObjectInfo {
    /// Creates the description of an object whose content is not known yet.
    ///
    /// # Errors
    /// [`LocalError::Invalid`] if the key is empty or longer than 1,024 bytes. [`LocalError::Limit`] if the metadata is
    /// longer than 8,192 bytes; each pair counts 32 bytes more than its texts.
    pub(crate) fn new(key: &str, metadata: ObjectMetadata, uploaded_at: Timestamp) -> Result<Self> {
        if key.is_empty() || key.len() > MAX_KEY {
            let what = format!("a key has 1 to {MAX_KEY} bytes: {key:.100?}");
            return Err(LocalError::Invalid(what));
        }
        let info = Self {
            key: key.to_owned(),
            content_type: metadata.content_type,
            etag: hex(&[0; 32]),
            size: 0,
            uploaded_at,
            http: metadata.http,
            custom: metadata.custom,
        };
        if info.metadata_bytes() > MAX_METADATA {
            let what = format!(
                "the metadata is longer than {MAX_METADATA} bytes; each pair counts {PAIR_BYTES} bytes more than its texts"
            );
            return Err(LocalError::Limit(what));
        }
        Ok(info)
    }

    /// Returns the length of the metadata in bytes, as the limit counts it.
    pub(crate) fn metadata_bytes(&self) -> usize {
        let pairs = self.http.iter().chain(&self.custom);
        let pairs = pairs.map(|(name, value)| name.len() + value.len() + PAIR_BYTES);
        self.content_type.len() + pairs.sum::<usize>()
    }

    fn to_line(&self) -> Result<Vec<u8>> {
        let mut line = serde_json::to_vec(self).map_err(|error| LocalError::Io(error.into()))?;
        line.push(b'\n');
        Ok(line)
    }
}

/// An object that is open for reading.
#[derive(Debug)]
pub(crate) struct ObjectReader {
    pub(crate) info: ObjectInfo,
    file: File,
    /// The offset of the content in the file.
    content_start: u64,
}

impl ObjectReader {
    /// Opens the file of an object. Returns `None` if it does not exist.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if is_absence(&error) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let mut line = Vec::new();
        let mut head = BufReader::new(&file).take(MAX_HEAD);
        let content_start = head.read_until(b'\n', &mut line)? as u64;
        let info = serde_json::from_slice(&line);
        let info = info.map_err(|error| LocalError::damaged_file(path, error))?;
        Ok(Some(Self {
            info,
            file,
            content_start,
        }))
    }

    /// Reads at most `max` bytes of the content, starting at `offset`. Returns no bytes at the end of the content.
    pub(crate) fn read(&mut self, offset: u64, max: u64) -> Result<Vec<u8>> {
        let start = self.content_start.saturating_add(offset);
        self.file.seek(SeekFrom::Start(start))?;
        let mut piece = Vec::new();
        (&self.file).take(max).read_to_end(&mut piece)?;
        Ok(piece)
    }
}

/// An object that is being written into a staged file.
#[derive(Debug)]
pub(crate) struct ObjectWriter {
    info: ObjectInfo,
    staged: StagingPath,
    file: File,
    digest: Sha256,
    max_bytes: u64,
    /// Length of the first line in bytes. The line is rewritten when size and digest are known.
    line_bytes: usize,
}

impl ObjectWriter {
    /// Starts writing an object whose content has at most `max_bytes` bytes.
    pub(crate) fn begin(
        info: ObjectInfo,
        (staged, file): (StagingPath, File),
        max_bytes: u64,
    ) -> Result<Self> {
        // Reserves room for the longest possible line. The final line is padded with spaces.
        let longest = ObjectInfo {
            size: u64::MAX,
            ..info.clone()
        };
        let line = longest.to_line()?;
        (&file).write_all(&line)?;
        Ok(Self {
            info,
            staged,
            file,
            digest: Sha256::new(),
            max_bytes,
            line_bytes: line.len(),
        })
    }

    /// Appends bytes to the content.
    ///
    /// # Errors
    /// [`LocalError::Limit`] if the object would be larger than its limit.
    pub(crate) fn append(&mut self, piece: &[u8]) -> Result<()> {
        let size = self.info.size.saturating_add(piece.len() as u64);
        if size > self.max_bytes {
            let what = format!("the object is larger than {} bytes", self.max_bytes);
            return Err(LocalError::Limit(what));
        }
        self.info.size = size;
        self.digest.update(piece);
        Ok(self.file.write_all(piece)?)
    }

    /// Writes the final first line. The file stays in the staging folder.
    pub(crate) fn finish(mut self) -> Result<(ObjectInfo, StagingPath, File)> {
        self.info.etag = hex(&self.digest.finalize());
        let mut line = self.info.to_line()?;
        line.pop();
        line.resize(self.line_bytes - 1, b' ');
        line.push(b'\n');
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&line)?;
        Ok((self.info, self.staged, self.file))
    }
}

const fn epoch() -> Timestamp {
    Timestamp::EPOCH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longest_description_fits_into_the_first_line() {
        // A control character has six bytes in JSON.
        let text = |length: usize| "\u{1}".repeat(length);
        let metadata = ObjectMetadata {
            content_type: String::new(),
            http: BTreeMap::new(),
            custom: BTreeMap::from([(text(1), text(MAX_METADATA - PAIR_BYTES - 1))]),
        };
        let mut info = ObjectInfo::new(&text(MAX_KEY), metadata, Timestamp::EPOCH).unwrap();
        info.size = u64::MAX;
        assert!((info.to_line().unwrap().len() as u64) < MAX_HEAD);
    }
}
