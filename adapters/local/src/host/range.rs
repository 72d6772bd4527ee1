//! Range requests and validators (RFC 9110, sections 8.8, 13 and 14).

/// The range that a `Range` header requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Range {
    /// The whole content: the header is invalid or requests several ranges.
    Whole,
    /// The bytes from `start` to `end`, both included; `start <= end < size`.
    Part {
        /// The offset of the first byte.
        start: u64,
        /// The offset of the last byte.
        end: u64,
    },
    /// No byte of the content lies in the requested range.
    Unsatisfiable,
}

impl Range {
    /// Parses a `Range` header for content of `size` bytes.
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
            ("", last) => {
                parse_saturating(last).map_or(Self::Whole, |length| Self::last(length, size))
            }
            (first, "") => parse_saturating(first)
                .map_or(Self::Whole, |start| Self::between(start, u64::MAX, size)),
            (first, last) => match (parse_saturating(first), parse_saturating(last)) {
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

/// Parses a number of any length. A number that does not fit becomes the maximum, which is larger than every file.
fn parse_saturating(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

/// Returns whether an `If-None-Match` header contains this entity tag, including its quotes. Weak and strong tags are
/// equal here.
pub(crate) fn matches_entity_tag(header: &str, tag: &str) -> bool {
    header.split(',').map(str::trim).any(|candidate| {
        candidate == "*" || candidate.strip_prefix("W/").unwrap_or(candidate) == tag
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn range_header_is_parsed_or_ignored() {
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
    fn entity_tag_matches_in_a_list() {
        assert!(matches_entity_tag("\"a\", W/\"b\"", "\"b\""));
        assert!(matches_entity_tag("*", "\"b\""));
        assert!(!matches_entity_tag("\"a\"", "\"b\""));
        assert!(!matches_entity_tag("b", "\"b\""));
    }

    proptest! {
        #[test]
        fn parsed_range_lies_inside_the_content(header in "(bytes=)?[0-9]{0,21}-[0-9]{0,21}", size in any::<u64>()) {
            if let Range::Part { start, end } = Range::parse(&header, size) {
                prop_assert!(start <= end && end < size);
            }
        }

        #[test]
        fn parsing_never_panics(header in any::<String>(), size in any::<u64>()) {
            Range::parse(&header, size);
        }

        #[test]
        fn adjacent_ranges_cover_the_content(size in 2_u64..10_000, cut in 1_u64..9_999) {
            let cut = cut.min(size - 1);
            let first = Range::parse(&format!("bytes=0-{}", cut - 1), size);
            let second = Range::parse(&format!("bytes={cut}-"), size);
            prop_assert_eq!(first, Range::Part { start: 0, end: cut - 1 });
            prop_assert_eq!(second, Range::Part { start: cut, end: size - 1 });
            prop_assert_eq!(Range::parse(&format!("bytes=-{}", size - cut), size), second);
        }
    }
}
