//! The files that are uploaded with one call.

use std::io::{self, Read};

use super::asset::{Asset, AssetHash, encode};

/// Maximum size of the files in one call, in bytes before encoding.
const MAX_BUCKET_BYTES: u64 = 40 * 1024 * 1024;

/// Maximum number of files in one call.
const MAX_BUCKET_FILES: usize = 2_000;

/// A builder of the body of an upload: a JSON array, written incrementally so that no file is in memory twice.
#[derive(Debug, Default)]
pub(super) struct UploadBatch {
    body: Vec<u8>,
    bytes: u64,
    files: usize,
}

impl UploadBatch {
    /// Returns whether another file of `size` bytes fits.
    pub(super) const fn has_room(&self, size: u64) -> bool {
        self.files < MAX_BUCKET_FILES && self.bytes + size <= MAX_BUCKET_BYTES
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.files == 0
    }

    /// Adds a file. Returns an error if its content has changed since it was hashed.
    pub(super) fn add(&mut self, asset: &Asset, content: &mut dyn Read) -> io::Result<()> {
        let text = |text: &str| serde_json::to_string(text).map_err(io::Error::from);
        let (hash, content_type) = (text(&asset.hash)?, text(&asset.content_type)?);
        let before = if self.is_empty() { "[" } else { "," };
        self.write(&format!("{before}{{\"key\":{hash},\"value\":\""));
        let mut hashed = AssetHash::new();
        encode(content, |piece| {
            hashed.update(piece);
            self.body.extend_from_slice(piece);
        })?;
        if hashed.finish(&asset.path) != asset.hash {
            let what = "a file of the site changed after it was hashed";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        self.write(&format!(
            "\",\"metadata\":{{\"contentType\":{content_type}}},\"base64\":true}}"
        ));
        self.bytes += asset.size;
        self.files += 1;
        Ok(())
    }

    fn write(&mut self, text: &str) {
        self.body.extend_from_slice(text.as_bytes());
    }

    /// Returns the body of the upload.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.body.push(b']');
        self.body
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn asset() -> Asset {
        Asset {
            path: "index.html".to_owned(),
            hash: "17453d0cfb9bacc76d9f30d3cb9ca048".to_owned(),
            size: 12,
            digest: [0; 32],
            content_type: "text/html; charset=utf-8".to_owned(),
        }
    }

    #[test]
    fn bucket_is_a_json_array_and_refuses_changed_files() {
        let mut bucket = UploadBatch::default();
        bucket.add(&asset(), &mut &b"<h1>hi</h1>\n"[..]).unwrap();
        let changed = bucket.add(&asset(), &mut &b"<h1>ho</h1>\n"[..]);
        assert_eq!(changed.unwrap_err().kind(), io::ErrorKind::InvalidData);
        let mut bucket = UploadBatch::default();
        bucket.add(&asset(), &mut &b"<h1>hi</h1>\n"[..]).unwrap();
        let body: Value = serde_json::from_slice(&bucket.finish()).unwrap();
        let expected = json!([{
            "key": "17453d0cfb9bacc76d9f30d3cb9ca048",
            "value": "PGgxPmhpPC9oMT4K",
            "metadata": { "contentType": "text/html; charset=utf-8" },
            "base64": true,
        }]);
        assert_eq!(body, expected);
    }

    #[test]
    fn bucket_is_limited_to_40_mib_and_2000_files() {
        let holding = |bytes, files| UploadBatch {
            bytes,
            files,
            ..UploadBatch::default()
        };
        assert!(holding(MAX_BUCKET_BYTES - 1, 1_999).has_room(1));
        assert!(!holding(MAX_BUCKET_BYTES - 1, 1_999).has_room(2));
        assert!(!holding(0, 2_000).has_room(0));
    }
}
