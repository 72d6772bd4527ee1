//! Which request ids of clients are kept.

/// The longest request id that is kept, in characters.
const MAX_LENGTH: usize = 128;

/// Tells whether a client's request id is kept: 1 to 128 characters of `[A-Za-z0-9._:-]`. Any other is replaced,
/// because it ends up in headers, logs and the audit.
#[must_use]
pub fn is_request_id(text: &[u8]) -> bool {
    !text.is_empty()
        && text.len() <= MAX_LENGTH
        && text
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b':' | b'-'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bounds_are_one_and_128_characters() {
        assert!(!is_request_id(b""));
        assert!(is_request_id(b"a"));
        assert!(is_request_id(&[b'x'; 128]));
        assert!(!is_request_id(&[b'x'; 129]));
    }

    proptest! {
        #[test]
        fn only_harmless_characters_are_taken_over(text in proptest::collection::vec(any::<u8>(), 1..128)) {
            let harmless = |b: &u8| b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._:-".contains(b);
            prop_assert_eq!(is_request_id(&text), text.iter().all(harmless));
        }
    }
}
