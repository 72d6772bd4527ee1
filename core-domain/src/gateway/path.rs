//! The check of request paths. A path that two readers could understand differently is refused, never repaired.

/// The reasons why a path is refused. All of them lead to the status 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The path does not start with a slash.
    #[error("The path must begin with a slash.")]
    NotAbsolute,
    /// The path has a `.` or `..` segment, in any encoding.
    #[error("The path must not contain '.' or '..' segments.")]
    DotSegment,
    /// The path has two slashes in a row.
    #[error("The path must not contain empty segments.")]
    EmptySegment,
    /// The path has a percent-encoded slash or backslash.
    #[error("The path must not contain an encoded slash or backslash.")]
    EncodedSlash,
    /// The path has a control character, raw or encoded.
    #[error("The path must not contain control characters.")]
    Control,
    /// The path has a `%` without two hexadecimal digits after it.
    #[error("The path contains a percent sign without two hexadecimal digits.")]
    BadEscape,
    /// The path has a character that is not allowed: a backslash, space, `#`, `;`, `?`, or one outside ASCII.
    #[error("The path contains a character that is not allowed.")]
    ForbiddenCharacter,
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

/// Returns the first byte of `bytes`, decoded once, and the number of bytes of its encoding.
fn next_byte(bytes: &[u8]) -> Result<Option<(u8, usize)>, PathError> {
    let Some(first) = bytes.first().copied() else {
        return Ok(None);
    };
    if first != b'%' {
        return Ok(Some((first, 1)));
    }
    let digit = |at: usize| bytes.get(at).copied().and_then(hex_digit);
    let (Some(high), Some(low)) = (digit(1), digit(2)) else {
        return Err(PathError::BadEscape);
    };
    Ok(Some((high * 16 + low, 3)))
}

fn check_byte(byte: u8, written: usize) -> Result<(), PathError> {
    if byte < b' ' || byte == 0x7f {
        return Err(PathError::Control);
    }
    if written > 1 {
        return if matches!(byte, b'/' | b'\\') {
            Err(PathError::EncodedSlash)
        } else {
            Ok(())
        };
    }
    if matches!(byte, b'\\' | b'#' | b';' | b'?' | b' ') || !byte.is_ascii() {
        return Err(PathError::ForbiddenCharacter);
    }
    Ok(())
}

fn check_segment(segment: &[u8]) -> Result<(), PathError> {
    let mut rest = segment;
    let mut length = 0_usize;
    let mut only_dots = true;
    while let Some((byte, written)) = next_byte(rest)? {
        check_byte(byte, written)?;
        length += 1;
        only_dots &= byte == b'.';
        rest = rest.get(written..).unwrap_or_default();
    }
    if only_dots && matches!(length, 1 | 2) {
        return Err(PathError::DotSegment);
    }
    Ok(())
}

/// Checks a path (without its query) in the form in which it was received. One trailing slash is allowed.
///
/// Percent escapes are decoded once for the check only; they are forwarded unchanged. `%252e` is therefore the harmless
/// text `%2e`.
///
/// # Errors
/// [`PathError`] with the first rule that the path breaks.
pub fn check_path(path: &str) -> Result<(), PathError> {
    let Some(relative) = path.strip_prefix('/') else {
        return Err(PathError::NotAbsolute);
    };
    if relative.is_empty() {
        return Ok(());
    }
    let segments = relative.strip_suffix('/').unwrap_or(relative);
    for segment in segments.split('/') {
        if segment.is_empty() {
            return Err(PathError::EmptySegment);
        }
        check_segment(segment.as_bytes())?;
    }
    Ok(())
}

/// Returns the normal form of a path: escapes decoded once, no trailing slash. Different spellings of a path have the
/// same normal form and are counted together.
///
/// Use it only for comparisons; the path is always forwarded in its original form. The result is meaningless for a path
/// that [`check_path`] refuses.
#[must_use]
pub(super) fn normalize_path(path: &str) -> Vec<u8> {
    let mut normal = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Ok(Some((byte, written))) = next_byte(rest) {
        normal.push(byte);
        rest = rest.get(written..).unwrap_or_default();
    }
    if normal.len() > 1 && normal.last() == Some(&b'/') {
        normal.pop();
    }
    normal
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn line_36_ambiguous_paths_are_refused() {
        for (path, error) in [
            ("", PathError::NotAbsolute),
            ("api", PathError::NotAbsolute),
            ("*", PathError::NotAbsolute),
            ("/api/./x", PathError::DotSegment),
            ("/api/..", PathError::DotSegment),
            ("/api/../", PathError::DotSegment),
            ("/api/%2e%2E/x", PathError::DotSegment),
            ("/api/.%2e/x", PathError::DotSegment),
            ("/api/%2e", PathError::DotSegment),
            ("//", PathError::EmptySegment),
            ("/api//x", PathError::EmptySegment),
            ("/api/x//", PathError::EmptySegment),
            ("/api/..%2fiam/x", PathError::EncodedSlash),
            ("/api/a%2Fb", PathError::EncodedSlash),
            ("/api/a%5cb", PathError::EncodedSlash),
            ("/api/a\\b", PathError::ForbiddenCharacter),
            ("/api/a%00", PathError::Control),
            ("/api/a%0d%0aX", PathError::Control),
            ("/api/a%7f", PathError::Control),
            ("/api/a\u{1}", PathError::Control),
            ("/api/a%", PathError::BadEscape),
            ("/api/a%2", PathError::BadEscape),
            ("/api/a%zz", PathError::BadEscape),
            ("/api/a#b", PathError::ForbiddenCharacter),
            ("/api/a;b=c", PathError::ForbiddenCharacter),
            ("/api/é", PathError::ForbiddenCharacter),
        ] {
            assert_eq!(check_path(path), Err(error), "{path}");
        }
    }

    #[test]
    fn line_36_ordinary_paths_and_double_encoding_are_accepted() {
        for path in [
            "/",
            "/health",
            "/api/v1/platforms/",
            "/api/v1/stacks/a.b",
            "/a/...",
            "/a/..b",
            "/a/%252e%252e/b",
            "/a/%C3%A9",
            "/a/x%20y:@!$&'()*+,=~",
        ] {
            assert_eq!(check_path(path), Ok(()), "{path}");
        }
    }

    #[test]
    fn spellings_of_one_path_have_the_same_normal_form() {
        assert_eq!(normalize_path("/a/b/"), normalize_path("/a/%62"));
        assert_ne!(normalize_path("/a/%252e"), normalize_path("/a/."));
        assert_eq!(normalize_path("/"), b"/");
    }

    proptest! {
        #[test]
        fn line_45_checking_a_path_never_panics(path in ".{0,60}") {
            let _ = check_path(&path);
            let _ = normalize_path(&path);
        }

        #[test]
        fn line_36_an_accepted_path_does_not_leave_its_root_when_decoded(
            path in "(/(\\.|%2[eEfF]|%5[cC]|[a-c;\\\\]|%25|%[0-9a-f]{2}){0,4}){1,5}"
        ) {
            if check_path(&path).is_err() {
                return Ok(());
            }
            let decoded = normalize_path(&path);
            let mut depth = 0_i32;
            for segment in decoded.split(|b| *b == b'/').skip(1) {
                prop_assert!(segment != b"." && segment != b"..");
                depth += 1;
            }
            // Decoding adds no slashes.
            let written = path.trim_end_matches('/').matches('/').count().max(1);
            prop_assert_eq!(usize::try_from(depth).unwrap(), written);
        }

        #[test]
        fn line_36_every_suffix_of_an_accepted_path_is_accepted(
            path in "(/[a-z.%0-9A-F]{1,6}){2,5}/?"
        ) {
            if check_path(&path).is_err() {
                return Ok(());
            }
            for (at, _) in path.match_indices('/') {
                prop_assert_eq!(check_path(&path[at..]), Ok(()));
            }
        }
    }
}
