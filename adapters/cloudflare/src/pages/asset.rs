//! The files of a site, their roles and their hashes.

use std::io::{self, Read};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Number of bytes that are encoded at once. A multiple of three, so that padding occurs only at the end.
const PIECE: u64 = 48 * 1024;

/// Maximum size of a file, in bytes.
pub(super) const MAX_FILE_BYTES: u64 = 25 * 1024 * 1024;

/// Files at the root of a site that configure how it is served. They are not pages.
const SETTINGS_FILES: [&str; 4] = ["_headers", "_redirects", "_routes.json", "_worker.js"];

/// Folders at the root that do not contain pages.
const SOURCES: [&str; 2] = ["functions", ".wrangler"];

/// Files and folders that are ignored anywhere in the site.
const IGNORED: [&str; 3] = [".DS_Store", "node_modules", ".git"];

/// A file of a site that visitors can request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asset {
    pub(super) path: String,
    /// The hash that identifies the file at the provider, computed from its content and extension.
    pub(super) hash: String,
    pub(super) size: u64,
    /// The SHA-256 digest of the content.
    pub(super) digest: [u8; 32],
    pub(super) content_type: String,
}

impl Asset {
    pub(super) fn new(path: &str, hash: String, size: u64, digest: [u8; 32]) -> Self {
        Self {
            path: path.to_owned(),
            hash,
            size,
            digest,
            content_type: content_type(path),
        }
    }
}

/// A file that configures how the site is served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SettingsFile {
    pub(super) name: &'static str,
    /// The SHA-256 digest of the content.
    pub(super) digest: [u8; 32],
    pub(super) content: Vec<u8>,
}

/// The role of a file of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Asset,
    Settings(&'static str),
    Ignored,
    /// A worker of several files, which would have to be bundled first.
    WorkerFolder,
}

impl Role {
    pub(super) fn of(path: &str) -> Self {
        let mut segments = path.split('/');
        let root = segments.next().unwrap_or_default();
        let is_folder = segments.next().is_some();
        if let Some(name) = SETTINGS_FILES.iter().find(|name| **name == root) {
            return match (is_folder, root) {
                (false, _) => Self::Settings(name),
                (true, "_worker.js") => Self::WorkerFolder,
                (true, _) => Self::Asset,
            };
        }
        let is_ignored = is_folder && SOURCES.contains(&root)
            || path.split('/').any(|segment| IGNORED.contains(&segment));
        if is_ignored {
            Self::Ignored
        } else {
            Self::Asset
        }
    }
}

/// Encodes the content in base64 and passes it to `sink` in pieces.
pub(super) fn encode(content: &mut dyn Read, mut sink: impl FnMut(&[u8])) -> io::Result<()> {
    let (mut piece, mut text) = (Vec::new(), String::new());
    loop {
        piece.clear();
        text.clear();
        let read = Read::take(&mut *content, PIECE).read_to_end(&mut piece)?;
        STANDARD.encode_string(&piece, &mut text);
        sink(text.as_bytes());
        if (read as u64) < PIECE {
            return Ok(());
        }
    }
}

/// A hasher for the hash that the API requires: over the base64 text of the content, followed by the extension.
pub(super) struct AssetHash(blake3::Hasher);

impl AssetHash {
    pub(super) fn new() -> Self {
        Self(blake3::Hasher::new())
    }

    pub(super) fn update(&mut self, base64: &[u8]) {
        self.0.update(base64);
    }

    pub(super) fn finish(mut self, path: &str) -> String {
        self.0.update(extension(path).as_bytes());
        self.0.finalize().to_hex()[..32].to_owned()
    }
}

pub(super) fn hash_of(path: &str, content: &mut dyn Read) -> io::Result<String> {
    let mut hash = AssetHash::new();
    encode(content, |piece| hash.update(piece))?;
    Ok(hash.finish(path))
}

/// Returns the text after the last dot of the file name; empty if that dot is the first character.
pub(super) fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.') {
        None | Some(("", _)) => "",
        Some((_, extension)) => extension,
    }
}

fn content_type(path: &str) -> String {
    let guess = mime_guess::from_path(path).first_or_octet_stream();
    if guess.type_() == "text" {
        format!("{guess}; charset=utf-8")
    } else {
        guess.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_equal_those_of_the_reference_client() {
        for (path, content, expected) in [
            (
                "index.html",
                &b"<h1>hi</h1>\n"[..],
                "17453d0cfb9bacc76d9f30d3cb9ca048",
            ),
            ("css/a.css", b"body{}\n", "aa42bba514e8ddfea838ec1a715ca332"),
            ("empty", b"", "af1349b9f5f9a1a6a0404dea36dcc949"),
        ] {
            assert_eq!(
                hash_of(path, &mut &content[..]).unwrap(),
                expected,
                "{path}"
            );
        }
    }

    #[test]
    fn encoding_in_pieces_equals_encoding_at_once() {
        for length in [0, 1, 3, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 2] {
            let content = vec![7; usize::try_from(length).unwrap()];
            let mut text = Vec::new();
            encode(&mut &content[..], |piece| text.extend_from_slice(piece)).unwrap();
            assert_eq!(text, STANDARD.encode(&content).into_bytes(), "{length}");
        }
    }

    #[test]
    fn extension_equals_that_of_node() {
        for (path, expected) in [
            ("a.tar.gz", "gz"),
            ("x/.env", ""),
            ("x.y/plain", ""),
            ("a.", ""),
            ("A.HTML", "HTML"),
        ] {
            assert_eq!(extension(path), expected, "{path}");
        }
    }
}
