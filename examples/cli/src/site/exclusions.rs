//! The files of a folder that are not part of its site.

use std::path::Path;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::config::files::read_optional;
use crate::config::project;
use crate::failure::{Failure, Result};

/// The file with further patterns, in the syntax of `.gitignore`.
const FILE_NAME: &str = ".coreignore";

/// The patterns that always hold, unless `.coreignore` negates them with `!`. The first four are
/// left out by `wrangler` as well. The others are files that often contain secrets.
const DEFAULT_PATTERNS: &[&str] = &[
    ".git",
    "node_modules",
    ".DS_Store",
    ".wrangler",
    ".env",
    ".env.*",
    ".dev.vars",
    ".npmrc",
];

/// The patterns of a folder.
#[derive(Debug)]
pub(crate) struct Exclusions(Gitignore);

impl Exclusions {
    /// Reads the patterns of a folder.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(FILE_NAME);
        let text = read_optional(&path).map_err(|error| Failure::unreadable(&path, &error))?;
        Self::parse(folder, text.as_deref().unwrap_or_default())
    }

    fn parse(folder: &Path, text: &str) -> Result<Self> {
        let mut builder = GitignoreBuilder::new(folder);
        let own_files = [format!("/{FILE_NAME}"), format!("/{}", project::FILE_NAME)];
        let patterns = DEFAULT_PATTERNS.iter().copied();
        let patterns = patterns
            .chain(own_files.iter().map(String::as_str))
            .map(|pattern| (None, pattern));
        let lines = text
            .lines()
            .enumerate()
            .map(|(number, line)| (Some(number + 1), line));
        for (number, pattern) in patterns.chain(lines) {
            builder.add_line(None, pattern).map_err(|error| {
                let place = number.map_or_else(String::new, |number| format!(", line {number}"));
                Failure::usage(format!("{FILE_NAME}{place}: {error}."))
            })?;
        }
        let built = builder
            .build()
            .map_err(|error| Failure::usage(format!("{FILE_NAME}: {error}.")))?;
        Ok(Self(built))
    }

    /// Returns whether a file or folder is left out. A folder that is left out is left out with its content.
    pub(crate) fn has_match(&self, path: &Path, is_folder: bool) -> bool {
        self.0.matched(path, is_folder).is_ignore()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn left_out(text: &str, path: &str) -> bool {
        Exclusions::parse(Path::new("/site"), text)
            .unwrap()
            .has_match(&Path::new("/site").join(path), false)
    }

    #[test]
    fn version_control_dependencies_and_secrets_are_left_out() {
        for path in [
            ".git",
            "a/node_modules",
            ".env",
            "a/.env.local",
            "core.toml",
            ".coreignore",
            ".DS_Store",
        ] {
            assert!(left_out("", path), "{path}");
        }
        for path in [
            "index.html",
            ".well-known/security.txt",
            "a/core.toml",
            "environment.js",
        ] {
            assert!(!left_out("", path), "{path}");
        }
    }

    #[test]
    fn the_file_adds_patterns_and_negates_them() {
        assert!(left_out("# maps\n*.map\n", "js/app.js.map"));
        assert!(!left_out("!node_modules\n", "node_modules"));
        assert!(!left_out("*.map\n!keep.map\n", "keep.map"));
    }

    #[test]
    fn an_invalid_pattern_is_an_error_with_its_line() {
        let failure = Exclusions::parse(Path::new("/site"), "ok\na{b\n").unwrap_err();
        assert!(failure.to_string().contains("line 2"), "{failure}");
    }
}
