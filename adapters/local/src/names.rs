//! Validation of names that become file names, and digests that turn any text into a safe file name.

use core_domain::kernel::hex;
use core_domain::port::ResourceRef;
use core_domain::registry::is_provider_name;
use sha2::{Digest, Sha256};

use crate::error::{LocalError, Result};

/// Checks the name of an object, see [`is_provider_name`].
pub(crate) fn check_name(name: &str) -> Result<()> {
    if is_provider_name(name) {
        Ok(())
    } else {
        Err(LocalError::Invalid(format!(
            "{name:?} is not the name of an object"
        )))
    }
}

/// Returns the type and name of an object, for messages.
pub(crate) fn display_name(resource: &ResourceRef) -> String {
    format!("{} {}", resource.resource_type, resource.name)
}

/// Returns whether an address label may contain this byte.
pub(crate) const fn is_label_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-'
}

/// Returns whether a text is a hostname: at least two labels of lower-case ASCII, separated by dots, and not an IPv4
/// address. A hostname is also a safe file name.
pub(crate) fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=63).contains(&label.len())
            && label
                .bytes()
                .all(|byte| is_label_byte(byte) || byte == b'_')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = text.rsplit_once('.').map(|(_, last)| last);
    let is_named = last.is_some_and(|last| !last.bytes().all(|byte| byte.is_ascii_digit()));
    text.len() <= 253 && is_named && text.split('.').all(is_label)
}

/// Returns whether a text can be the name of a variable in a script.
pub(crate) fn is_identifier(name: &str) -> bool {
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let good = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    starts_well && name.len() <= 128 && name.bytes().all(good)
}

/// Checks the paths of the files of a site or a bundle. Each path is relative, has forward slashes and no empty, `.` or
/// `..` part, and is at most `max_bytes` long. No path occurs twice or is the folder of another path.
pub(crate) fn check_paths<'a>(
    paths: impl IntoIterator<Item = &'a str>,
    max_bytes: usize,
) -> Result<()> {
    let mut sorted: Vec<&str> = paths.into_iter().collect();
    for path in &sorted {
        check_path(path, max_bytes)?;
    }
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(LocalError::Invalid(format!(
            "the path {:?} occurs twice",
            pair[0]
        )));
    }
    for path in &sorted {
        let folders = path.match_indices('/').map(|(end, _)| &path[..end]);
        for folder in folders {
            if sorted.binary_search(&folder).is_ok() {
                return Err(LocalError::Invalid(format!(
                    "the path {folder:?} is both a file and a folder"
                )));
            }
        }
    }
    Ok(())
}

fn check_path(path: &str, max_bytes: usize) -> Result<()> {
    let good = path.len() <= max_bytes && path.split('/').all(is_safe_part);
    if good {
        Ok(())
    } else {
        Err(LocalError::Invalid(format!("{path:?} is not a safe path")))
    }
}

/// Returns whether a text is exactly one part of a path on every operating system.
pub(crate) fn is_safe_part(part: &str) -> bool {
    !matches!(part, "" | "." | "..")
        && !part
            .chars()
            .any(|c| c == '/' || c == '\\' || c.is_control())
}

/// Returns the address label of a branch, without the project: the branch name in characters that an address allows. A
/// changed or shortened name ends in a digest, so that different branches have different labels. A label never contains
/// two dashes in a row, so `{label}--{project}` can be split.
pub(crate) fn branch_label(project: &str, branch: &str) -> String {
    // An address label has at most 63 characters.
    let room = 61_usize.saturating_sub(project.len()).clamp(8, 28);
    let mut label = String::new();
    for c in branch.chars().map(|c| c.to_ascii_lowercase()) {
        if c.is_ascii_alphanumeric() {
            label.push(c);
        } else if !label.is_empty() && !label.ends_with('-') {
            label.push('-');
        }
    }
    if !label.is_empty() && label == branch && label.len() <= room && !label.ends_with('-') {
        return label;
    }
    let digest = digest(&[branch.as_bytes()]);
    label.truncate(room - 7);
    let kept = label.trim_end_matches('-');
    let separator = if kept.is_empty() { "" } else { "-" };
    format!("{kept}{separator}{}", &digest[..6])
}

/// Returns the SHA-256 of the content in hexadecimal, as printed by `sha256sum`.
pub(crate) fn content_digest(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

/// Returns the SHA-256 of several parts in hexadecimal. The length of each part is hashed too, so different lists of
/// parts have different digests.
pub(crate) fn digest(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_must_have_the_documented_form() {
        for good in ["abc", "a-1", "acme-1a2b3c4d-dev-db", &"a".repeat(58)] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in [
            "", "ab", "1ab", "-ab", "ab-", "a.b", "a/b", "../x", "Abc", "a_b", "abc\0", "äbc",
        ] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
        assert!(check_name(&"a".repeat(59)).is_err());
    }

    #[test]
    fn hostname_is_a_safe_file_name() {
        for good in [
            "shop.example.org",
            "_acme.x-y.example",
            "xn--bcher-kva.example",
        ] {
            assert!(is_hostname(good) && is_safe_part(good), "{good}");
        }
        for bad in [
            "",
            ".",
            "..",
            "a..b",
            ".a",
            "a.",
            "-a.b",
            "a-.b",
            "A.b",
            "a/b",
            "a:80",
            "localhost",
            "127.0.0.1",
        ] {
            assert!(!is_hostname(bad), "{bad}");
        }
        assert!(!is_hostname(&format!("{}.example", "a".repeat(64))));
        assert!(!is_hostname(&["abcdefgh"; 29].join(".")));
    }

    #[test]
    fn unsafe_and_conflicting_paths_are_refused() {
        let check = |paths: &[&str]| check_paths(paths.iter().copied(), 1_024);
        assert!(check(&["index.html", "css/site.css", "css/a/b.css", "grüße.txt"]).is_ok());
        for bad in [
            "", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\\b", "a\0b", "a\nb",
        ] {
            assert!(check(&[bad]).is_err(), "{bad:?}");
        }
        assert!(check(&["a", "a"]).is_err());
        assert!(check(&["a", "a-b", "a/b"]).is_err());
        assert!(check(&[&*"a".repeat(1_025)]).is_err());
    }

    #[test]
    fn branch_label_gets_a_digest_unless_the_name_is_plain() {
        assert_eq!(branch_label("site", "preview"), "preview");
        let (slash, upper) = (
            branch_label("site", "feature/x"),
            branch_label("site", "Feature/X"),
        );
        assert!(slash.starts_with("feature-x-"), "{slash}");
        assert_ne!(slash, upper);
        assert_ne!(
            branch_label("site", "feature/x"),
            branch_label("site", "feature-x")
        );
    }

    proptest! {
        #[test]
        fn branch_label_is_always_valid_in_an_address(branch in any::<String>(), length in 3_usize..54) {
            let label = branch_label(&"p".repeat(length), &branch);
            prop_assert!(!label.is_empty());
            prop_assert!(label.len() + 2 + length <= 63);
            prop_assert!(label.bytes().all(is_label_byte));
            prop_assert!(!label.contains("--") && !label.starts_with('-') && !label.ends_with('-'));
        }
    }
}
