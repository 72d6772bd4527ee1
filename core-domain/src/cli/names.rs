//! Paths in a site: normalised, and each there once.

use std::collections::BTreeMap;

use unicode_normalization::{UnicodeNormalization, is_nfc};

use super::SiteError;

/// How many bytes the paths of all files and folders may have, as given and case-folded: names are cheap to pack, and they
/// are all that a site keeps in memory.
const MAX_NAME_BYTES: usize = 12 * 1024 * 1024;

/// The path without `./` parts, in Unicode normalisation form C.
pub(super) fn normalize(path: &str, max_bytes: usize) -> Result<String, SiteError> {
    let too_long = || {
        let what = format!("a path has more than {max_bytes} bytes");
        SiteError::Unfit("path_too_long", what)
    };
    if path.len() > max_bytes {
        return Err(too_long());
    }
    let path = nfc(path);
    if path.len() > max_bytes {
        return Err(too_long());
    }
    let unfit = |code, what: &str| Err(SiteError::Unfit(code, format!("{path:?} {what}")));
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

fn nfc(text: &str) -> String {
    if is_nfc(text) {
        text.to_owned()
    } else {
        text.nfc().collect()
    }
}

/// What two names have in common that are one name where case does not count. Upper case comes first because some letters
/// differ in lower case alone: `ß` and `ss`, `ς` and `σ`.
fn fold(path: &str) -> String {
    if path.is_ascii() {
        return path.to_ascii_lowercase();
    }
    nfc(&path.to_uppercase().to_lowercase())
}

/// The names that are taken: case-folded paths of files and of the folders they are in.
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
    /// Takes the name of a file; `path` is normalised.
    pub(super) fn add_file(&mut self, path: &str) -> Result<(), SiteError> {
        let folded = fold(path);
        let duplicate = || SiteError::Unfit("duplicate_name", format!("{path:?} is there twice"));
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
            let what = "the paths of the site are too many and too long".to_owned();
            return Err(SiteError::TooLarge(what));
        }
        self.kinds.insert(folded, kind);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_normalised_to_nfc_and_measured_afterwards() {
        assert_eq!(
            normalize("cafe\u{301}/u\u{308}.html", 100).unwrap(),
            "café/ü.html"
        );
        assert_eq!(normalize("./a/./b", 100).unwrap(), "a/b");
        // Eight bytes in form C, four as given.
        let grows = "\u{1D15E}";
        assert!(normalize(grows, grows.len()).is_err());
    }

    #[test]
    fn names_that_differ_in_case_or_spelling_alone_are_one_name() {
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
