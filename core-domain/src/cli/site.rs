//! Rules for the content of an uploaded site. The entries of an archive are passed to a [`SiteBuilder`] one after the
//! other, so that content that would be refused is not read.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// The page that every site must have at its root.
const FRONT_PAGE: &str = "index.html";

/// The number of unpacked bytes up to which [`SiteLimits::ratio`] is not applied.
const MIN_BYTES_FOR_RATIO: u64 = 1024 * 1024;

/// Maximum total size in bytes of the paths of all files and folders, as given and case-folded. Names compress well,
/// and the builder keeps all of them in memory.
const MAX_NAME_BYTES: usize = 12 * 1024 * 1024;

/// Limits for the size of an upload and its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteLimits {
    /// Maximum size of the upload in bytes. Default: 100 MiB.
    pub upload_bytes: u64,
    /// Maximum total size of all files in bytes. Default: 512 MiB.
    pub unpacked_bytes: u64,
    /// Maximum number of unpacked bytes per uploaded byte. Applied to sites of more than 1 MiB. Default: 100.
    pub ratio: u64,
    /// Maximum number of files. Default: 20,000.
    pub files: usize,
    /// Maximum size of a file in bytes. Default: 25 MiB.
    pub file_bytes: u64,
    /// Maximum length of a path in bytes. Default: 1,024.
    pub path_bytes: usize,
}

impl Default for SiteLimits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            upload_bytes: 100 * MIB,
            unpacked_bytes: 512 * MIB,
            ratio: 100,
            files: 20_000,
            file_bytes: 25 * MIB,
            path_bytes: 1_024,
        }
    }
}

/// The reasons why an upload is not a valid site.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SiteError {
    /// The upload or its content exceeds a limit.
    #[error("{0}")]
    TooLarge(String),
    /// The upload has content that is not allowed. The first value is the reason as a code in snake case, the second a
    /// message.
    #[error("{1}")]
    NotAllowed(&'static str, String),
    /// The format of the upload is not supported.
    #[error("the upload is not a tar, tar.gz or zip archive")]
    UnknownFormat,
}

/// A file of a site, without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteFile {
    /// The path inside the site, in Unicode normalisation form C, with forward slashes and no leading one:
    /// `css/site.css`.
    pub path: String,
    /// The length of the content in bytes.
    pub size: u64,
    /// The SHA-256 digest of the content.
    pub digest: [u8; 32],
}

/// Checks the entries of an archive and builds the list of a site's files. It does not store content.
#[derive(Debug)]
pub struct SiteBuilder {
    limits: SiteLimits,
    max_bytes: u64,
    files: Vec<SiteFile>,
    bytes: u64,
    names: Names,
}

impl SiteBuilder {
    /// Creates a builder for the site in an upload of `upload_bytes` bytes.
    #[must_use]
    pub fn new(limits: SiteLimits, upload_bytes: u64) -> Self {
        let by_ratio = upload_bytes
            .saturating_mul(limits.ratio)
            .max(MIN_BYTES_FOR_RATIO);
        Self {
            limits,
            max_bytes: limits.unpacked_bytes.min(by_ratio),
            files: Vec::new(),
            bytes: 0,
            names: Names::default(),
        }
    }

    /// Checks the path of a folder. Empty folders are ignored.
    ///
    /// # Errors
    /// [`SiteError::NotAllowed`] if the path is not allowed in a site.
    pub fn folder(&self, path: &str) -> Result<(), SiteError> {
        let path = path.trim_end_matches('/');
        if matches!(path, "" | ".") {
            return Ok(());
        }
        normalize(path, self.limits.path_bytes).map(drop)
    }

    /// Returns the maximum size of the next file in bytes. A caller that tries to read one more byte detects a file
    /// that is too large.
    #[must_use]
    pub fn remaining_file_bytes(&self) -> u64 {
        self.limits.file_bytes.min(self.max_bytes - self.bytes)
    }

    /// Checks a file before its content is read. `size` is the size that the archive states.
    ///
    /// # Errors
    /// [`SiteError`] with the rule that the file breaks.
    pub fn check(&self, path: &str, size: u64) -> Result<(), SiteError> {
        normalize(path, self.limits.path_bytes)?;
        if self.files.len() >= self.limits.files {
            let max = self.limits.files;
            return Err(SiteError::TooLarge(format!(
                "the site has more than {max} files"
            )));
        }
        self.check_size(path, size)
    }

    fn check_size(&self, path: &str, size: u64) -> Result<(), SiteError> {
        if size > self.limits.file_bytes {
            let max = self.limits.file_bytes;
            return Err(SiteError::TooLarge(format!(
                "{path:?} has more than {max} bytes"
            )));
        }
        if size > self.max_bytes - self.bytes {
            let max = self.max_bytes;
            return Err(SiteError::TooLarge(format!(
                "the unpacked site has more than {max} bytes"
            )));
        }
        Ok(())
    }

    /// Adds a file whose content was read. `size` and `digest` are the length and SHA-256 digest of the content.
    ///
    /// # Errors
    /// Those of [`SiteBuilder::check`], and [`SiteError::NotAllowed`] if the name exists already in any case or Unicode
    /// spelling.
    pub fn add_file(&mut self, path: &str, size: u64, digest: [u8; 32]) -> Result<(), SiteError> {
        self.check(path, size)?;
        let path = normalize(path, self.limits.path_bytes)?;
        self.names.add_file(&path)?;
        self.bytes += size;
        self.files.push(SiteFile { path, size, digest });
        Ok(())
    }

    /// Returns the files of a part of a site, in the order in which they were added.
    #[must_use]
    pub fn finish_part(self) -> Vec<SiteFile> {
        self.files
    }

    /// Returns the files of the site, in the order in which they were added. If the root has no front page, a single
    /// folder that contains all files is removed from their paths.
    ///
    /// # Errors
    /// [`SiteError::NotAllowed`] if the upload is empty or the site has no front page.
    pub fn finish(mut self) -> Result<Vec<SiteFile>, SiteError> {
        if self.files.is_empty() {
            let what = "the upload contains no files".to_owned();
            return Err(SiteError::NotAllowed("empty_archive", what));
        }
        let has_front = |files: &[SiteFile]| files.iter().any(|f| f.path == FRONT_PAGE);
        if !has_front(&self.files) {
            remove_wrapping_folder(&mut self.files);
        }
        if !has_front(&self.files) {
            let what = format!("the site has no {FRONT_PAGE} at its root");
            return Err(SiteError::NotAllowed("no_front_page", what));
        }
        Ok(self.files)
    }
}

fn remove_wrapping_folder(files: &mut [SiteFile]) {
    let folders: BTreeSet<Option<&str>> = files
        .iter()
        .map(|file| file.path.split_once('/').map(|(folder, _)| folder))
        .collect();
    if folders.len() != 1 || folders.contains(&None) {
        return;
    }
    for file in files {
        if let Some(slash) = file.path.find('/') {
            file.path.drain(..=slash);
        }
    }
}

/// Returns the path without `.` parts, in Unicode normalisation form C.
pub(super) fn normalize(path: &str, max_bytes: usize) -> Result<String, SiteError> {
    let too_long = || {
        let what = format!("a path has more than {max_bytes} bytes");
        SiteError::NotAllowed("path_too_long", what)
    };
    if path.len() > max_bytes {
        return Err(too_long());
    }
    let path = nfc(path);
    if path.len() > max_bytes {
        return Err(too_long());
    }
    let unfit = |code, what: &str| Err(SiteError::NotAllowed(code, format!("{path:?} {what}")));
    if path.starts_with('/') {
        return unfit("absolute_path", "is an absolute path");
    }
    if path.contains('\\') || path.chars().any(char::is_control) {
        return unfit("bad_path", "contains a backslash or control character");
    }
    let parts: Vec<&str> = path.split('/').filter(|part| *part != ".").collect();
    if parts.contains(&"..") {
        return unfit("path_leaves_site", "points outside the site");
    }
    if parts.is_empty() || parts.contains(&"") {
        return unfit("bad_path", "has an empty part");
    }
    Ok(parts.join("/"))
}

fn nfc(text: &str) -> String {
    if is_nfc(text) {
        text.to_owned()
    } else {
        text.nfc().collect()
    }
}

/// Returns the case-folded form of a name. It is equal for names that are the same where case is ignored. Upper case
/// comes first because some letters differ only in lower case: `ß` and `ss`, `ς` and `σ`.
fn fold(path: &str) -> String {
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    nfc(&path.to_uppercase().to_lowercase())
}

/// The names in use: case-folded paths of files and their folders.
#[derive(Debug, Default)]
pub(super) struct Names {
    kinds: BTreeMap<String, Kind>,
    bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
}

impl Names {
    /// Adds the name of a file. `path` must be normalised.
    pub(super) fn add_file(&mut self, path: &str) -> Result<(), SiteError> {
        let folded = fold(path);
        let duplicate =
            || SiteError::NotAllowed("duplicate_name", format!("{path:?} occurs more than once"));
        for (end, _) in folded.match_indices('/') {
            match self.kinds.get(&folded[..end]) {
                Some(Kind::File) => return Err(duplicate()),
                Some(Kind::Folder) => {}
                None => self.insert(folded[..end].to_owned(), Kind::Folder, 0)?,
            }
        }
        if self.kinds.contains_key(&folded) {
            return Err(duplicate());
        }
        self.insert(folded, Kind::File, path.len())
    }

    fn insert(&mut self, folded: String, kind: Kind, path_bytes: usize) -> Result<(), SiteError> {
        self.bytes += folded.len() + path_bytes;
        if self.bytes > MAX_NAME_BYTES {
            let what = "the paths of the site have too many bytes in total".to_owned();
            return Err(SiteError::TooLarge(what));
        }
        self.kinds.insert(folded, kind);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UPLOAD: u64 = 1_000;
    const DIGEST: [u8; 32] = [7; 32];

    fn build(paths: &[&str]) -> Result<Vec<String>, SiteError> {
        let mut builder = SiteBuilder::new(SiteLimits::default(), UPLOAD);
        for path in paths {
            builder.add_file(path, 1, DIGEST)?;
        }
        let mut paths: Vec<_> = builder.finish()?.into_iter().map(|f| f.path).collect();
        paths.sort_unstable();
        Ok(paths)
    }

    fn code(paths: &[&str]) -> &'static str {
        match build(paths) {
            Err(SiteError::NotAllowed(code, _)) => code,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_one_wrapping_folder_is_removed() {
        assert_eq!(
            build(&["./index.html", "./css/a.css"]).unwrap(),
            ["css/a.css", "index.html"]
        );
        assert_eq!(
            build(&["dist/index.html", "dist/a/b"]).unwrap(),
            ["a/b", "index.html"]
        );
        assert_eq!(code(&["a/b/index.html"]), "no_front_page");
        assert_eq!(code(&["a/index.html", "b/x"]), "no_front_page");
        assert_eq!(code(&["a/index.html", "x"]), "no_front_page");
        assert_eq!(
            build(&["index.html", "a/index.html"]).unwrap(),
            ["a/index.html", "index.html"]
        );
    }

    #[test]
    fn unsafe_paths_are_refused_with_a_specific_code() {
        for (path, expected) in [
            ("/index.html", "absolute_path"),
            ("../index.html", "path_leaves_site"),
            ("a/../../x", "path_leaves_site"),
            ("a\\b", "bad_path"),
            ("a\0b", "bad_path"),
            ("a//b", "bad_path"),
            ("", "bad_path"),
            (".", "bad_path"),
            (&*"a".repeat(1_025), "path_too_long"),
        ] {
            assert_eq!(code(&[path]), expected, "{path:?}");
        }
        assert_eq!(code(&[]), "empty_archive");
        assert_eq!(code(&["index.html", "INDEX.HTML"]), "duplicate_name");
        assert_eq!(code(&["index.html", "./index.html"]), "duplicate_name");
        assert_eq!(code(&["a", "A/b"]), "duplicate_name");
        assert_eq!(code(&["A/b", "a"]), "duplicate_name");
    }

    #[test]
    fn limits_are_exact_to_the_byte() {
        let limits = SiteLimits {
            upload_bytes: 10,
            unpacked_bytes: 8,
            ratio: 100,
            files: 2,
            file_bytes: 5,
            path_bytes: 10,
        };
        let mut builder = SiteBuilder::new(limits, 10);
        let too_large = |outcome| matches!(outcome, Err(SiteError::TooLarge(_)));
        assert!(too_large(builder.check("a", 6)));
        builder.add_file("index.html", 5, DIGEST).unwrap();
        assert_eq!(builder.remaining_file_bytes(), 3);
        assert!(too_large(builder.add_file("b", 4, DIGEST)));
        builder.add_file("b", 3, DIGEST).unwrap();
        assert!(too_large(builder.check("c", 0)));
        assert_eq!(builder.finish().unwrap().len(), 2);
    }

    #[test]
    fn a_site_above_one_mebibyte_has_at_most_a_hundred_times_the_size_of_its_upload() {
        let small = SiteBuilder::new(SiteLimits::default(), 10);
        assert!(small.check("a", 1024 * 1024).is_ok());
        assert!(small.check("a", 1024 * 1024 + 1).is_err());
        let large = SiteBuilder::new(SiteLimits::default(), 100_000);
        assert!(large.check("a", 10_000_000).is_ok());
        assert!(large.check("a", 10_000_001).is_err());
    }

    #[test]
    fn the_total_size_of_all_paths_is_limited() {
        let mut builder = SiteBuilder::new(SiteLimits::default(), UPLOAD);
        let deep = |n: usize| format!("{n}{}/x", "/a".repeat(500));
        let refused = (0..1_000).find_map(|n| builder.add_file(&deep(n), 0, DIGEST).err());
        assert!(matches!(refused, Some(SiteError::TooLarge(_))));
        let mut wide = SiteBuilder::new(SiteLimits::default(), UPLOAD);
        for n in 0..20_000 {
            wide.add_file(
                &format!("node/modules/{}/dist/assets/{n}.js", n / 4),
                0,
                DIGEST,
            )
            .unwrap();
        }
    }

    #[test]
    fn decomposed_paths_are_normalised_before_they_are_compared() {
        assert_eq!(
            build(&["index.html", "cafe\u{301}.html"]).unwrap(),
            ["café.html", "index.html"]
        );
        for twin in ["cafe\u{301}.html", "CAFÉ.html", "CAFE\u{301}.HTML"] {
            let paths = ["index.html", "café.html", twin];
            assert_eq!(code(&paths), "duplicate_name", "{twin}");
        }
        assert_eq!(code(&["e\u{301}", "é/index.html"]), "duplicate_name");
        assert_eq!(
            build(&["e\u{301}/index.html", "é/b"]).unwrap(),
            ["b", "index.html"]
        );
    }

    proptest! {
        #[test]
        fn a_site_has_only_safe_and_unique_paths(
            paths in prop::collection::vec("[aA./]{0,6}|index.html|\\PC{0,8}", 0..12),
        ) {
            let mut builder = SiteBuilder::new(SiteLimits::default(), UPLOAD);
            for path in &paths {
                let _ = builder.add_file(path, 0, DIGEST);
            }
            let Ok(files) = builder.finish() else { return Ok(()) };
            let mut folded = BTreeSet::new();
            for file in &files {
                prop_assert!(!file.path.starts_with('/'));
                prop_assert!(file.path.split('/').all(|part| !matches!(part, "" | "." | "..")));
                prop_assert!(folded.insert(file.path.to_lowercase()), "{} twice", file.path);
            }
            prop_assert!(folded.contains(FRONT_PAGE));
        }
    }

    #[test]
    fn the_length_of_a_path_is_checked_after_normalisation() {
        assert_eq!(
            normalize("cafe\u{301}/u\u{308}.html", 100).unwrap(),
            "café/ü.html"
        );
        assert_eq!(normalize("./a/./b", 100).unwrap(), "a/b");
        // Normalisation form C needs eight bytes for this character, UTF-8 as given only four.
        let grows = "\u{1D15E}";
        assert!(normalize(grows, grows.len()).is_err());
    }

    #[test]
    fn names_that_differ_only_in_case_or_unicode_spelling_fold_to_one_name() {
        for (one, other) in [
            ("index.html", "INDEX.html"),
            ("straße", "STRASSE"),
            ("ὈΔΥΣΣΕΎΣ", "ὀδυσσεύς"),
            ("É.html", "é.html"),
        ] {
            assert_eq!(fold(one), fold(other), "{one} {other}");
        }
        assert_ne!(fold("e.html"), fold("é.html"));
    }
}
