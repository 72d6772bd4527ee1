//! The list of a site's files, by which an upload of only some of them is completed.

use std::io;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::site::{SiteBuilder, SiteError, SiteFile, SiteLimits};
use crate::kernel::{hex, parse_hex};

/// A file of a planned site.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlannedFile {
    /// The path inside the site, with forward slashes and no leading one: `css/site.css`.
    #[schemars(length(min = 1, max = 1024), example = &"index.html")]
    pub path: String,
    /// The length of the content in bytes.
    pub size: u64,
    /// The SHA-256 digest of the content, in lower-case hexadecimal.
    #[schemars(
        length(min = 64, max = 64),
        regex(pattern = "^[0-9a-f]+$"),
        example = &"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    )]
    pub digest: String,
}

/// The files of a site. Each path occurs once, and one of them is the front page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteManifest {
    files: Vec<SiteFile>,
}

impl SiteManifest {
    /// Checks a list of files by the rules of an uploaded archive.
    ///
    /// # Errors
    /// The position of the first file that breaks a rule, and the rule. The position is `None` for a rule about the
    /// whole site.
    pub fn new(
        files: &[PlannedFile],
        limits: SiteLimits,
    ) -> Result<Self, (Option<usize>, SiteError)> {
        // The unpacked size is not limited by the size of an upload, because most files may not be uploaded.
        let mut builder = SiteBuilder::new(limits, u64::MAX);
        for (position, file) in files.iter().enumerate() {
            let added = match parse_hex(&file.digest) {
                Some(digest) => builder.add_file(&file.path, file.size, digest),
                None => Err(SiteError::NotAllowed(
                    "pattern",
                    "the digest is not 64 hexadecimal digits".to_owned(),
                )),
            };
            added.map_err(|error| (Some(position), error))?;
        }
        let files = builder.finish().map_err(|error| (None, error))?;
        Ok(Self { files })
    }

    /// Decodes a stored list.
    ///
    /// # Errors
    /// An error if the JSON is not that of [`Self::to_json`].
    pub fn from_json(json: &[u8]) -> io::Result<Self> {
        let planned: Vec<PlannedFile> = serde_json::from_slice(json)?;
        let files = planned.into_iter().map(|file| {
            Some(SiteFile {
                digest: parse_hex(&file.digest)?,
                path: file.path,
                size: file.size,
            })
        });
        let files: Option<Vec<_>> = files.collect();
        let damaged = || io::Error::new(io::ErrorKind::InvalidData, "a digest is not hexadecimal");
        Ok(Self {
            files: files.ok_or_else(damaged)?,
        })
    }

    /// Encodes the list as JSON.
    #[must_use]
    pub fn to_json(&self) -> Vec<u8> {
        let planned: Vec<_> = self.files.iter().map(PlannedFile::of).collect();
        serde_json::to_vec(&planned).unwrap_or_default()
    }

    /// Returns the files, in the order in which they were listed.
    #[must_use]
    pub fn files(&self) -> &[SiteFile] {
        &self.files
    }

    /// Returns the SHA-256 digest of all paths and contents, in hexadecimal. It does not depend on the order of the
    /// files.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut sorted: Vec<&SiteFile> = self.files.iter().collect();
        sorted.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let mut hash = Sha256::new();
        for file in sorted {
            // A path contains no NUL.
            hash.update(file.path.as_bytes());
            hash.update([0]);
            hash.update(file.digest);
        }
        hex(&hash.finalize())
    }
}

impl PlannedFile {
    fn of(file: &SiteFile) -> Self {
        Self {
            path: file.path.clone(),
            size: file.size,
            digest: hex(&file.digest),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::port::Site;
    use crate::testing::MemorySite;

    use super::*;

    fn planned_files(files: &[(&str, &str)]) -> Vec<PlannedFile> {
        let site = MemorySite::from_iter(files.iter().copied());
        site.files().iter().map(PlannedFile::of).collect()
    }

    fn manifest(files: &[(&str, &str)]) -> SiteManifest {
        SiteManifest::new(&planned_files(files), SiteLimits::default()).unwrap()
    }

    fn refusal(files: &[PlannedFile]) -> (Option<usize>, &'static str) {
        match SiteManifest::new(files, SiteLimits::default()).unwrap_err() {
            (position, SiteError::NotAllowed(code, _)) => (position, code),
            (position, _) => (position, "too_large"),
        }
    }

    #[test]
    fn planned_files_obey_the_rules_of_an_archive() {
        assert_eq!(refusal(&[]), (None, "empty_archive"));
        assert_eq!(
            refusal(&planned_files(&[("a.html", "x")])),
            (None, "no_front_page")
        );
        let twice = planned_files(&[("index.html", "x"), ("INDEX.html", "x")]);
        assert_eq!(refusal(&twice), (Some(1), "duplicate_name"));
        let mut large = planned_files(&[("index.html", "x")]);
        large[0].size = 26 * 1024 * 1024;
        assert_eq!(refusal(&large), (Some(0), "too_large"));
        let mut damaged = planned_files(&[("index.html", "x")]);
        damaged[0].digest = "x".repeat(64);
        assert_eq!(refusal(&damaged), (Some(0), "pattern"));
    }

    #[test]
    fn the_stored_list_has_the_same_files() {
        let stored = manifest(&[("index.html", "x"), ("é.css", "")]);
        assert_eq!(SiteManifest::from_json(&stored.to_json()).unwrap(), stored);
        assert!(
            SiteManifest::from_json(b"[{\"path\":\"a\",\"size\":1,\"digest\":\"0\"}]").is_err()
        );
    }

    #[test]
    fn the_digest_depends_on_paths_and_contents_but_not_on_their_order() {
        let digest = |files| manifest(files).digest();
        let first = digest(&[("index.html", "x"), ("a", "y")]);
        assert_eq!(digest(&[("a", "y"), ("index.html", "x")]), first);
        assert_ne!(digest(&[("index.html", "x"), ("a", "z")]), first);
        assert_ne!(digest(&[("index.html", "x"), ("b", "y")]), first);
    }
}
