//! What may be in an uploaded site. An archive's entries are told to a [`SiteBuilder`] one after the other, so that
//! nothing is read that would be refused anyway.

use std::collections::{BTreeMap, BTreeSet};

use crate::port::SiteFile;

/// The page every site has.
const FRONT_PAGE: &str = "index.html";

/// Below this many bytes nobody asks how well an upload was packed.
const RATIO_COUNTS_FROM: u64 = 1024 * 1024;

/// How many bytes the paths of all folders may have, so that deep ones cannot be a burden: names are cheap to pack.
const MOST_FOLDER_BYTES: usize = 16 * 1024 * 1024;

/// How large an upload and what is in it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the upload.
    pub upload_bytes: u64,
    /// Uploads that are received at once; each is in memory until it is kept.
    pub uploads_at_once: usize,
    /// Bytes of all files together.
    pub unpacked_bytes: u64,
    /// Unpacked bytes for a byte of the upload, once there is more than 1 MiB of them.
    pub ratio: u64,
    /// Files.
    pub files: usize,
    /// Bytes of a file.
    pub file_bytes: u64,
    /// Bytes of a path.
    pub path_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            upload_bytes: 100 * MIB,
            uploads_at_once: 4,
            unpacked_bytes: 512 * MIB,
            ratio: 100,
            files: 20_000,
            file_bytes: 25 * MIB,
            path_bytes: 1_024,
        }
    }
}

/// Why an upload is no site.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SiteError {
    /// It, or something in it, is larger than allowed.
    #[error("{0}")]
    TooLarge(String),
    /// Something in it has no place in a site; the word tells what in snake case.
    #[error("{1}")]
    Unfit(&'static str, String),
    /// It is in no format that is understood.
    #[error("the upload is no tar, tar.gz or zip")]
    UnknownFormat,
}

/// Puts a site together from the entries of an archive.
#[derive(Debug)]
pub struct SiteBuilder {
    limits: Limits,
    most_bytes: u64,
    files: Vec<SiteFile>,
    bytes: u64,
    /// Case-folded paths of files and of the folders they are in.
    names: BTreeMap<String, Kind>,
    folder_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
}

impl SiteBuilder {
    /// A site of an upload of so many bytes.
    #[must_use]
    pub fn new(limits: Limits, upload_bytes: u64) -> Self {
        let by_ratio = upload_bytes
            .saturating_mul(limits.ratio)
            .max(RATIO_COUNTS_FROM);
        Self {
            limits,
            most_bytes: limits.unpacked_bytes.min(by_ratio),
            files: Vec::new(),
            bytes: 0,
            names: BTreeMap::new(),
            folder_bytes: 0,
        }
    }

    /// Checks the path of a folder. Empty folders leave no trace.
    ///
    /// # Errors
    /// [`SiteError::Unfit`] for a path that has no place in a site.
    pub fn folder(&self, path: &str) -> Result<(), SiteError> {
        let path = path.trim_end_matches('/');
        if matches!(path, "" | ".") {
            return Ok(());
        }
        self.cleaned(path).map(drop)
    }

    /// Says how many bytes the next file may have; read one more to find out that it has too many.
    #[must_use]
    pub fn room(&self) -> u64 {
        self.limits.file_bytes.min(self.most_bytes - self.bytes)
    }

    /// Checks a file before its content is read. `size` is what the archive says of it.
    ///
    /// # Errors
    /// [`SiteError`] says what is wrong with it.
    pub fn check(&self, path: &str, size: u64) -> Result<(), SiteError> {
        self.cleaned(path)?;
        if self.files.len() >= self.limits.files {
            let most = self.limits.files;
            return Err(SiteError::TooLarge(format!("more than {most} files")));
        }
        self.check_size(path, size)
    }

    fn check_size(&self, path: &str, size: u64) -> Result<(), SiteError> {
        if size > self.limits.file_bytes {
            let most = self.limits.file_bytes;
            return Err(SiteError::TooLarge(format!(
                "{path:?} has more than {most} bytes"
            )));
        }
        if size > self.most_bytes - self.bytes {
            let most = self.most_bytes;
            return Err(SiteError::TooLarge(format!(
                "the unpacked site has more than {most} bytes"
            )));
        }
        Ok(())
    }

    /// Adds a file.
    ///
    /// # Errors
    /// As [`SiteBuilder::check`]; [`SiteError::Unfit`] for a name that is there already, in whatever case.
    pub fn file(&mut self, path: &str, content: Vec<u8>) -> Result<(), SiteError> {
        let size = content.len() as u64;
        self.check(path, size)?;
        let path = self.cleaned(path)?;
        self.take_name(&path)?;
        self.bytes += size;
        self.files.push(SiteFile { path, content });
        Ok(())
    }

    fn take_name(&mut self, path: &str) -> Result<(), SiteError> {
        let folded = path.to_lowercase();
        let twice = || SiteError::Unfit("duplicate_name", format!("{path:?} is there twice"));
        for (end, _) in folded.match_indices('/') {
            match self.names.get(&folded[..end]) {
                Some(Kind::File) => return Err(twice()),
                Some(Kind::Folder) => {}
                None => self.take_folder(&folded[..end])?,
            }
        }
        match self.names.insert(folded, Kind::File) {
            None => Ok(()),
            Some(_) => Err(twice()),
        }
    }

    fn take_folder(&mut self, folded: &str) -> Result<(), SiteError> {
        self.folder_bytes += folded.len();
        if self.folder_bytes > MOST_FOLDER_BYTES {
            return Err(SiteError::TooLarge("too many deep folders".to_owned()));
        }
        self.names.insert(folded.to_owned(), Kind::Folder);
        Ok(())
    }

    /// The path without `./` parts.
    fn cleaned(&self, path: &str) -> Result<String, SiteError> {
        let unfit = |code, what: &str| Err(SiteError::Unfit(code, format!("{path:?} {what}")));
        if path.len() > self.limits.path_bytes {
            return Err(SiteError::Unfit(
                "path_too_long",
                format!("a path has more than {} bytes", self.limits.path_bytes),
            ));
        }
        if path.starts_with('/') {
            return unfit("absolute_path", "is an absolute path");
        }
        if path.contains('\\') || path.chars().any(char::is_control) {
            return unfit("bad_path", "has a character no path of a site has");
        }
        let parts: Vec<&str> = path.split('/').filter(|part| *part != ".").collect();
        if parts.contains(&"..") {
            return unfit("path_leaves_site", "leaves the site");
        }
        if parts.is_empty() || parts.contains(&"") {
            return unfit("bad_path", "has an empty part");
        }
        Ok(parts.join("/"))
    }

    /// The site. Without a front page at the root, the one folder that holds everything is taken off.
    ///
    /// # Errors
    /// [`SiteError::Unfit`] for an empty upload and for a site without a front page.
    pub fn finish(mut self) -> Result<Vec<SiteFile>, SiteError> {
        if self.files.is_empty() {
            let what = "there is no file in the upload".to_owned();
            return Err(SiteError::Unfit("empty_archive", what));
        }
        let has_front = |files: &[SiteFile]| files.iter().any(|f| f.path == FRONT_PAGE);
        if !has_front(&self.files) {
            unwrap_folder(&mut self.files);
        }
        if !has_front(&self.files) {
            let what = format!("there is no {FRONT_PAGE} at the root of the site");
            return Err(SiteError::Unfit("no_front_page", what));
        }
        self.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(self.files)
    }
}

fn unwrap_folder(files: &mut [SiteFile]) {
    let folders: BTreeSet<Option<&str>> = files
        .iter()
        .map(|file| file.path.split_once('/').map(|(folder, _)| folder))
        .collect();
    if folders.len() != 1 || folders.contains(&None) {
        return;
    }
    for file in files {
        if let Some((_, rest)) = file.path.split_once('/') {
            file.path = rest.to_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const UPLOAD: u64 = 1_000;

    fn built(paths: &[&str]) -> Result<Vec<String>, SiteError> {
        let mut builder = SiteBuilder::new(Limits::default(), UPLOAD);
        for path in paths {
            builder.file(path, vec![1])?;
        }
        let files = builder.finish()?;
        Ok(files.into_iter().map(|file| file.path).collect())
    }

    fn code(paths: &[&str]) -> &'static str {
        match built(paths) {
            Err(SiteError::Unfit(code, _)) => code,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn one_wrapping_folder_is_taken_off_and_no_more() {
        assert_eq!(
            built(&["./index.html", "./css/a.css"]).unwrap(),
            ["css/a.css", "index.html"]
        );
        assert_eq!(
            built(&["dist/index.html", "dist/a/b"]).unwrap(),
            ["a/b", "index.html"]
        );
        assert_eq!(code(&["a/b/index.html"]), "no_front_page");
        assert_eq!(code(&["a/index.html", "b/x"]), "no_front_page");
        assert_eq!(code(&["a/index.html", "x"]), "no_front_page");
        assert_eq!(
            built(&["index.html", "a/index.html"]).unwrap(),
            ["a/index.html", "index.html"]
        );
    }

    #[test]
    fn what_has_no_place_in_a_site_is_refused_by_name() {
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
    fn every_limit_is_kept_to_the_byte() {
        let limits = Limits {
            upload_bytes: 10,
            uploads_at_once: 1,
            unpacked_bytes: 8,
            ratio: 100,
            files: 2,
            file_bytes: 5,
            path_bytes: 10,
        };
        let mut builder = SiteBuilder::new(limits, 10);
        let too_large = |outcome| matches!(outcome, Err(SiteError::TooLarge(_)));
        assert!(too_large(builder.check("a", 6)));
        builder.file("index.html", vec![0; 5]).unwrap();
        assert_eq!(builder.room(), 3);
        assert!(too_large(builder.file("b", vec![0; 4])));
        builder.file("b", vec![0; 3]).unwrap();
        assert!(too_large(builder.check("c", 0)));
        assert_eq!(builder.finish().unwrap().len(), 2);
    }

    #[test]
    fn an_upload_that_unpacks_to_a_hundred_times_its_size_is_refused_from_a_mebibyte_on() {
        let small = SiteBuilder::new(Limits::default(), 10);
        assert!(small.check("a", 1024 * 1024).is_ok());
        assert!(small.check("a", 1024 * 1024 + 1).is_err());
        let large = SiteBuilder::new(Limits::default(), 100_000);
        assert!(large.check("a", 10_000_000).is_ok());
        assert!(large.check("a", 10_000_001).is_err());
    }

    #[test]
    fn folders_below_folders_below_folders_are_no_burden() {
        let mut builder = SiteBuilder::new(Limits::default(), UPLOAD);
        let deep = |n: usize| format!("{n}{}/x", "/a".repeat(500));
        let refused = (0..1_000).find_map(|n| builder.file(&deep(n), Vec::new()).err());
        assert!(matches!(refused, Some(SiteError::TooLarge(_))));
        let mut wide = SiteBuilder::new(Limits::default(), UPLOAD);
        for n in 0..20_000 {
            wide.file(
                &format!("node/modules/{}/dist/assets/{n}.js", n / 4),
                Vec::new(),
            )
            .unwrap();
        }
    }

    proptest! {
        #[test]
        fn whatever_the_paths_a_site_has_safe_ones_each_once(
            paths in prop::collection::vec("[aA./]{0,6}|index.html|\\PC{0,8}", 0..12),
        ) {
            let mut builder = SiteBuilder::new(Limits::default(), UPLOAD);
            for path in &paths {
                let _ = builder.file(path, Vec::new());
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
}
