//! Finds the files of a site by the rules of an archive.

use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use unicode_normalization::UnicodeNormalization;

use super::exclusions::Exclusions;
use crate::failure::{Failure, Result};

/// Maximum number of files of a site.
pub(crate) const MAX_FILES: usize = 20_000;

/// Maximum length of a path inside a site in bytes.
pub(crate) const MAX_PATH_BYTES: usize = 1024;

/// The page that every site has at its root.
const FRONT_PAGE: &str = "index.html";

/// A file of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalFile {
    /// The path inside the site, with forward slashes, in Unicode normalisation form C.
    pub(crate) path: String,
    /// The path on this machine.
    pub(crate) source: PathBuf,
    /// The length of the content in bytes.
    pub(crate) size: u64,
    /// The time of the last change; `None` if the file system does not record it.
    pub(crate) modified: Option<SystemTime>,
    /// The number of the file in its file system; 0 on systems without such numbers.
    pub(crate) inode: u64,
}

/// Returns the files of a folder in the order of their paths.
///
/// Symbolic links to files inside the folder count as files. Links that lead out of the folder and links to folders are
/// refused, because an archive cannot have them and a site without them would be incomplete.
pub(crate) fn find_files(folder: &Path) -> Result<Vec<LocalFile>> {
    let refuse = |problem: &str| {
        Failure::usage(format!(
            "Failed to open the folder {}: {problem}.",
            folder.display()
        ))
        .hint("Name the folder with the built site: core-cli deploy DIR")
    };
    let root = fs::canonicalize(folder).map_err(|error| refuse(&error.to_string()))?;
    if !root.is_dir() {
        return Err(refuse("it is not a folder"));
    }
    let walk = Walk {
        exclusions: Exclusions::read(&root)?,
        root,
    };
    let mut files = Vec::new();
    walk.visit(&walk.root.clone(), "", &mut files)?;
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    if let Some([_, second]) = files.array_windows().find(|[a, b]| a.path == b.path) {
        let what = format!("Two files of the site have the path {:?}.", second.path);
        return Err(
            Failure::usage(what).hint("Rename one: their names differ only in their encoding.")
        );
    }
    if !files.iter().any(|file| file.path == FRONT_PAGE) {
        let what = format!("{} has no {FRONT_PAGE}.", folder.display());
        return Err(Failure::usage(what).hint(
            "Build the site first, or name the folder with the built site: core-cli deploy dist",
        ));
    }
    Ok(files)
}

struct Walk {
    root: PathBuf,
    exclusions: Exclusions,
}

impl Walk {
    /// Adds the files of a folder. `prefix` is its path inside the site, with a slash at the end unless it is empty.
    fn visit(&self, folder: &Path, prefix: &str, files: &mut Vec<LocalFile>) -> Result<()> {
        let unreadable =
            |error: io::Error| Failure::io(&format!("read {}", folder.display()), &error);
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let source = entry.path();
            let kind = entry.file_type().map_err(unreadable)?;
            if self.exclusions.has_match(&source, kind.is_dir()) {
                continue;
            }
            let name = file_name(&source)?;
            if kind.is_dir() {
                self.visit(&source, &format!("{prefix}{name}/"), files)?;
                continue;
            }
            let metadata = if kind.is_symlink() {
                self.follow_link(&source)?
            } else {
                entry.metadata().map_err(unreadable)?
            };
            if metadata.is_file() {
                let path = format!("{prefix}{name}");
                check_limits(&path, files.len())?;
                files.push(local_file(path, source, &metadata));
            } else {
                let what = format!("{} is neither a file nor a folder.", source.display());
                return Err(Failure::usage(what)
                    .hint("Delete it, or leave it out with a line in .coreignore."));
            }
        }
        Ok(())
    }

    /// Returns the metadata of the file that a symbolic link inside the site leads to.
    fn follow_link(&self, link: &Path) -> Result<Metadata> {
        let refuse = |what: &str| {
            let hint =
                "Copy the target to this place, or leave the link out with a line in .coreignore.";
            Err(Failure::usage(format!("The symbolic link {} {what}.", link.display())).hint(hint))
        };
        let Ok(target) = fs::canonicalize(link) else {
            return refuse("leads nowhere");
        };
        if !target.starts_with(&self.root) {
            return refuse("leads out of the site");
        }
        match fs::metadata(&target) {
            Ok(metadata) if metadata.is_file() => Ok(metadata),
            _ => refuse("does not lead to a file"),
        }
    }
}

/// Refuses a file that the server would refuse, `count` files after the first.
fn check_limits(path: &str, count: usize) -> Result<()> {
    if count >= MAX_FILES {
        let what = format!("The site has more than {MAX_FILES} files.");
        return Err(Failure::usage(what).hint("Leave files out with lines in .coreignore."));
    }
    if path.len() > MAX_PATH_BYTES {
        let what = format!("The path {path:?} has more than {MAX_PATH_BYTES} bytes.");
        return Err(Failure::usage(what)
            .hint("Rename its folders, or leave it out with a line in .coreignore."));
    }
    Ok(())
}

/// Returns the name of a file or folder in normal form.
fn file_name(path: &Path) -> Result<String> {
    let name = path.file_name().and_then(|name| name.to_str());
    let is_plain = |name: &&str| !name.contains('\\') && !name.chars().any(char::is_control);
    match name.filter(is_plain) {
        Some(name) => Ok(name.nfc().collect()),
        None => Err(Failure::usage(format!(
            "The name of {} cannot be part of an address.",
            path.display()
        ))
        .hint("Rename it: names are Unicode text without backslashes and control characters.")),
    }
}

fn local_file(path: String, source: PathBuf, metadata: &Metadata) -> LocalFile {
    LocalFile {
        path,
        source,
        size: metadata.len(),
        modified: metadata.modified().ok(),
        inode: inode(metadata),
    }
}

#[cfg(unix)]
fn inode(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::FailureKind;

    /// Creates a folder with files of these paths.
    fn site(paths: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for path in paths {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "content").unwrap();
        }
        folder
    }

    fn paths(folder: &Path) -> Vec<String> {
        find_files(folder)
            .unwrap()
            .into_iter()
            .map(|file| file.path)
            .collect()
    }

    #[test]
    fn files_are_listed_in_the_order_of_their_paths() {
        let folder = site(&[
            "index.html",
            "b/x",
            "a/y/z",
            ".well-known/w",
            "node_modules/n",
        ]);
        assert_eq!(
            paths(folder.path()),
            [".well-known/w", "a/y/z", "b/x", "index.html"]
        );
    }

    #[test]
    fn a_folder_without_front_page_is_refused() {
        let folder = site(&["dist/index.html"]);
        let failure = find_files(folder.path()).unwrap_err().to_string();
        assert!(failure.contains("core-cli deploy dist"), "{failure}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_file_inside_counts_as_the_file() {
        let folder = site(&["index.html", "a/x"]);
        std::os::unix::fs::symlink("a/x", folder.path().join("y")).unwrap();
        assert_eq!(paths(folder.path()), ["a/x", "index.html", "y"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_out_of_the_site_to_folders_and_to_nothing_are_refused() {
        for target in ["/etc/hostname", "../outside", "a", "missing"] {
            let folder = site(&["site/index.html", "site/a/x", "outside"]);
            let root = folder.path().join("site");
            std::os::unix::fs::symlink(target, root.join("link")).unwrap();
            let failure = find_files(&root).unwrap_err();
            assert_eq!(failure.kind, FailureKind::Usage, "{target}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_link_that_is_left_out_is_not_followed() {
        let folder = site(&["index.html"]);
        std::os::unix::fs::symlink("/etc", folder.path().join("link")).unwrap();
        fs::write(folder.path().join(".coreignore"), "/link\n").unwrap();
        assert_eq!(paths(folder.path()), ["index.html"]);
    }

    #[test]
    fn decomposed_names_are_composed() {
        let folder = site(&["index.html", "cafe\u{301}.html"]);
        assert!(paths(folder.path()).contains(&"caf\u{e9}.html".to_owned()));
    }
}
