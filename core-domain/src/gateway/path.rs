//! Which request paths are taken at all. A path that could mean two things to two readers is refused, never repaired.

/// Why a path is refused. Every variant is a 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// It does not begin with a slash.
    #[error("The path must begin with a slash.")]
    NotAbsolute,
    /// A `.` or `..` segment, in any encoding.
    #[error("The path may not contain '.' or '..' segments.")]
    DotSegment,
    /// Two slashes in a row.
    #[error("The path may not contain empty segments.")]
    EmptySegment,
    /// A slash or backslash in percent encoding.
    #[error("The path may not contain an encoded slash or backslash.")]
    EncodedSlash,
    /// A control character, raw or encoded.
    #[error("The path may not contain control characters.")]
    Control,
    /// A `%` that two hexadecimal digits do not follow.
    #[error("The path contains a percent sign without two hexadecimal digits.")]
    BadEscape,
    /// A character that must not stand in a path here: backslash, `#`, `;`, or anything that is not ASCII.
    #[error("The path contains a character that is not allowed.")]
    Character,
}

fn hex_digit(byte: u8) -> Option<u8> {
    char::from(byte)
        .to_digit(16)
        .and_then(|digit| u8::try_from(digit).ok())
}

/// The byte that begins at the front of `bytes`, decoded once, and how many bytes it is written with.
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
        return Err(PathError::Character);
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

/// Checks a path (without its query) as it stands on the wire. One trailing slash is fine.
///
/// Escapes are decoded once to be judged and never to be forwarded: `%252e` is the harmless text `%2e`.
///
/// # Errors
/// [`PathError`] with the first thing that is wrong.
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

/// What a path means, so that spellings of the same path are counted together: escapes decoded once, no slash at the end.
///
/// Only for comparing; what is forwarded is always the path as written. A path that [`check_path`] refuses has no meaning.
#[must_use]
pub(super) fn normal_path(path: &str) -> Vec<u8> {
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
    fn what_two_readers_could_read_differently_is_refused() {
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
            ("/api/a\\b", PathError::Character),
            ("/api/a%00", PathError::Control),
            ("/api/a%0d%0aX", PathError::Control),
            ("/api/a%7f", PathError::Control),
            ("/api/a\u{1}", PathError::Control),
            ("/api/a%", PathError::BadEscape),
            ("/api/a%2", PathError::BadEscape),
            ("/api/a%zz", PathError::BadEscape),
            ("/api/a#b", PathError::Character),
            ("/api/a;b=c", PathError::Character),
            ("/api/é", PathError::Character),
        ] {
            assert_eq!(check_path(path), Err(error), "{path}");
        }
    }

    #[test]
    fn ordinary_paths_pass_and_double_encoding_is_only_text() {
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
    fn spellings_of_one_path_are_one_path() {
        assert_eq!(normal_path("/a/b/"), normal_path("/a/%62"));
        assert_ne!(normal_path("/a/%252e"), normal_path("/a/."));
        assert_eq!(normal_path("/"), b"/");
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(path in ".{0,60}") {
            let _ = check_path(&path);
            let _ = normal_path(&path);
        }

        #[test]
        fn a_path_that_passes_cannot_climb_out_when_decoded(
            path in "(/(\\.|%2[eEfF]|%5[cC]|[a-c;\\\\]|%25|%[0-9a-f]{2}){0,4}){1,5}"
        ) {
            if check_path(&path).is_err() {
                return Ok(());
            }
            let decoded = normal_path(&path);
            let mut depth = 0_i32;
            for segment in decoded.split(|b| *b == b'/').skip(1) {
                prop_assert!(segment != b"." && segment != b"..");
                depth += 1;
            }
            // Decoding brings no slash that was not there.
            let written = path.trim_end_matches('/').matches('/').count().max(1);
            prop_assert_eq!(usize::try_from(depth).unwrap(), written);
        }

        #[test]
        fn what_is_behind_any_segment_of_a_good_path_is_good_again(
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
