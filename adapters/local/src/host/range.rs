//! Range requests and validators (RFC 9110, sections 8.8, 13 and 14).

/// What a `Range` header asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    /// Everything: the header is not understood, or asks for several pieces.
    Whole,
    /// The bytes from `start` to `end`, both included; `start <= end < size`.
    Part {
        /// First byte.
        start: u64,
        /// Last byte.
        end: u64,
    },
    /// Nothing the content has.
    Unsatisfiable,
}

impl Range {
    /// Reads a `Range` header for content of this size.
    pub(crate) fn parse(header: &str, size: u64) -> Self {
        let Some((unit, set)) = header.split_once('=') else {
            return Self::Whole;
        };
        if !unit.trim().eq_ignore_ascii_case("bytes") || set.contains(',') {
            return Self::Whole;
        }
        let Some((first, last)) = set.trim().split_once('-') else {
            return Self::Whole;
        };
        match (first, last) {
            ("", last) => number(last).map_or(Self::Whole, |length| Self::last(length, size)),
            (first, "") => {
                number(first).map_or(Self::Whole, |start| Self::between(start, u64::MAX, size))
            }
            (first, last) => match (number(first), number(last)) {
                (Some(start), Some(end)) if start <= end => Self::between(start, end, size),
                _ => Self::Whole,
            },
        }
    }

    const fn last(length: u64, size: u64) -> Self {
        if length == 0 || size == 0 {
            return Self::Unsatisfiable;
        }
        Self::Part {
            start: size.saturating_sub(length),
            end: size - 1,
        }
    }

    const fn between(start: u64, end: u64, size: u64) -> Self {
        if start >= size {
            return Self::Unsatisfiable;
        }
        let end = if end < size { end } else { size - 1 };
        Self::Part { start, end }
    }
}

/// A number of any length; one too large for us is larger than every file.
fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Tells whether an `If-None-Match` header names this entity tag, quotes included. Weak and strong tags are the same
/// here.
pub(crate) fn names_tag(header: &str, tag: &str) -> bool {
    header.split(',').map(str::trim).any(|candidate| {
        candidate == "*" || candidate.strip_prefix("W/").unwrap_or(candidate) == tag
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_forms_of_a_single_range() {
        let part = |start, end| Range::Part { start, end };
        for (header, expected) in [
            ("bytes=0-0", part(0, 0)),
            ("bytes=0-", part(0, 99)),
            ("Bytes=10-19", part(10, 19)),
            ("bytes=90-200", part(90, 99)),
            ("bytes=-1", part(99, 99)),
            ("bytes=-500", part(0, 99)),
            ("bytes=99999999999999999999999-", Range::Unsatisfiable),
            ("bytes=0-99999999999999999999999", part(0, 99)),
            ("bytes=100-", Range::Unsatisfiable),
            ("bytes=-0", Range::Unsatisfiable),
            ("bytes=5-4", Range::Whole),
            ("bytes=0-1,3-4", Range::Whole),
            ("bytes=-", Range::Whole),
            ("bytes=a-b", Range::Whole),
            ("bytes=+1-2", Range::Whole),
            ("lines=0-1", Range::Whole),
            ("bytes", Range::Whole),
            ("", Range::Whole),
        ] {
            assert_eq!(Range::parse(header, 100), expected, "{header}");
        }
        assert_eq!(Range::parse("bytes=0-", 0), Range::Unsatisfiable);
        assert_eq!(Range::parse("bytes=-5", 0), Range::Unsatisfiable);
    }

    #[test]
    fn a_tag_is_found_in_a_list() {
        assert!(names_tag("\"a\", W/\"b\"", "\"b\""));
        assert!(names_tag("*", "\"b\""));
        assert!(!names_tag("\"a\"", "\"b\""));
        assert!(!names_tag("b", "\"b\""));
    }

    proptest! {
        #[test]
        fn a_part_always_lies_inside_the_content(header in "(bytes=)?[0-9]{0,21}-[0-9]{0,21}", size in any::<u64>()) {
            if let Range::Part { start, end } = Range::parse(&header, size) {
                prop_assert!(start <= end && end < size);
            }
        }

        #[test]
        fn any_header_is_taken_without_failing(header in any::<String>(), size in any::<u64>()) {
            Range::parse(&header, size);
        }

        #[test]
        fn two_neighbouring_ranges_make_the_whole(size in 2_u64..10_000, cut in 1_u64..9_999) {
            let cut = cut.min(size - 1);
            let first = Range::parse(&format!("bytes=0-{}", cut - 1), size);
            let second = Range::parse(&format!("bytes={cut}-"), size);
            prop_assert_eq!(first, Range::Part { start: 0, end: cut - 1 });
            prop_assert_eq!(second, Range::Part { start: cut, end: size - 1 });
            prop_assert_eq!(Range::parse(&format!("bytes=-{}", size - cut), size), second);
        }
    }
}
