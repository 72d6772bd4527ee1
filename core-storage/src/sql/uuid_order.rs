//! The order of UUIDs among other texts.
//!
//! A database that stores ids as UUIDs cannot compare them with a text that is none, such as the unknown id of a request or the
//! first digits of an instant. Such a text is replaced by the first UUID that does not sort before it.

/// The smallest UUID.
const NIL: &str = "00000000-0000-0000-0000-000000000000";

/// Returns the first UUID, in order, that does not sort before the text; `None` if all do.
pub(super) fn first_uuid_from(text: &str) -> Option<String> {
    for (at, (zero, byte)) in NIL.bytes().zip(text.bytes()).enumerate() {
        let next = match zero {
            b'-' if byte == b'-' => continue,
            b'-' => (byte < b'-').then_some('-'),
            _ if is_digit(byte) => continue,
            _ => next_digit(byte),
        };
        return match next {
            Some(next) => Some(first_uuid_with(&text[..at], next)),
            None => successor(&text[..at]),
        };
    }
    // The text is a UUID, the start of UUIDs, or a UUID and more.
    match NIL.get(text.len()..) {
        Some(rest) => Some(format!("{text}{rest}")),
        None => successor(&text[..NIL.len()]),
    }
}

const fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'a'..=b'f')
}

/// Returns the first digit that sorts after the byte, which is no digit itself.
const fn next_digit(byte: u8) -> Option<char> {
    match byte {
        ..b'0' => Some('0'),
        b':'..b'a' => Some('a'),
        _ => None,
    }
}

/// Returns the smallest UUID that starts with this text and character.
fn first_uuid_with(start: &str, next: char) -> String {
    let rest = NIL.get(start.len() + 1..).unwrap_or_default();
    format!("{start}{next}{rest}")
}

/// Returns the first UUID that sorts after all that begin with the start of a UUID; `None` if there is none.
fn successor(start: &str) -> Option<String> {
    let at = start.rfind(|c| !matches!(c, 'f' | '-'))?;
    let larger = match start.as_bytes().get(at)? {
        b'9' => b'a',
        digit => digit + 1,
    };
    Some(first_uuid_with(&start[..at], char::from(larger)))
}

#[cfg(test)]
mod tests {
    use core_domain::kernel::is_uuid;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_text_is_replaced_by_the_first_uuid_that_does_not_sort_before_it() {
        let first = |text| first_uuid_from(text);
        assert_eq!(first(""), Some(NIL.to_owned()));
        assert_eq!(first(NIL), Some(NIL.to_owned()));
        for (text, expected) in [
            ("019a5b1e-7c20", "019a5b1e-7c20-0000-0000-000000000000"),
            ("019a5b1e-7c2g", "019a5b1e-7c30-0000-0000-000000000000"),
            ("019a5b1e-7cf~", "019a5b1e-7d00-0000-0000-000000000000"),
            ("9~", "a0000000-0000-0000-0000-000000000000"),
            ("01A", "01a00000-0000-0000-0000-000000000000"),
            ("019a5b1e:", "019a5b1f-0000-0000-0000-000000000000"),
            ("019a5b1e 7", "019a5b1e-0000-0000-0000-000000000000"),
            (
                "019a5b1e-7c20-7d3e-9b4a-5f6c7d8e9f09~",
                "019a5b1e-7c20-7d3e-9b4a-5f6c7d8e9f0a",
            ),
        ] {
            assert_eq!(first(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "g",
            "ff~",
            "ffffffff-ffff-ffff-ffff-ffffffffffff0",
            "lookup",
        ] {
            assert_eq!(first(text), None, "{text}");
        }
    }

    /// Returns texts that are close to UUIDs.
    fn text() -> impl Strategy<Value = String> {
        prop_oneof!["[0-9a-f-]{0,40}", ".{0,12}", uuid(), uuid_with_a_change()]
    }

    fn uuid() -> impl Strategy<Value = String> {
        "[0f]{0,3}[0-9a-f]{5}[0f]{0,3}".prop_flat_map(|start| {
            any::<[u8; 16]>().prop_map(move |bytes| {
                let digits = core_domain::kernel::hex(&bytes);
                let digits = format!("{start}{digits}");
                format!(
                    "{}-{}-{}-{}-{}",
                    &digits[..8],
                    &digits[8..12],
                    &digits[12..16],
                    &digits[16..20],
                    &digits[20..32]
                )
            })
        })
    }

    fn uuid_with_a_change() -> impl Strategy<Value = String> {
        (uuid(), 0_usize..36, "[ -~é]").prop_map(|(uuid, at, other)| {
            let (start, end) = uuid.split_at(at);
            format!("{start}{other}{}", &end[1..])
        })
    }

    proptest! {
        #[test]
        fn a_text_and_its_replacement_sort_equally_among_uuids(text in text(), other in uuid(), same in any::<bool>()) {
            // A UUID with the same start is where the two could differ.
            let shared = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            let shared = shared.filter(|at| *at <= 36).max().unwrap_or(0);
            let spliced = format!("{}{}", &text[..shared], other.get(shared..).unwrap_or_default());
            let other = if same && is_uuid(&spliced) { spliced } else { other };
            let from = first_uuid_from(&text);
            prop_assert_eq!(
                other >= text,
                from.as_ref().is_some_and(|from| other >= *from),
                "{} {:?}", other, from
            );
            prop_assert!(from.is_none_or(|from| is_uuid(&from)));
        }
    }
}
