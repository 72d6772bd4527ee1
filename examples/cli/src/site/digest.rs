//! SHA-256 digests and their text.

/// A SHA-256 digest.
pub(crate) type FileDigest = [u8; 32];

/// Returns a digest in lower-case hexadecimal.
pub(crate) fn to_hex(digest: &FileDigest) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .map(|digit| char::from(DIGITS[usize::from(digit)]))
        .collect()
}

/// Parses a digest in hexadecimal; `None` if the text is not one.
pub(crate) fn from_hex(text: &str) -> Option<FileDigest> {
    let mut digest = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (at, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).ok()?;
    }
    Some(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_digest_is_parsed_again() {
        let digest = [0x0a; 32];
        assert_eq!(from_hex(&to_hex(&digest)), Some(digest));
        assert_eq!(from_hex("0a"), None);
        assert_eq!(from_hex(&"x".repeat(64)), None);
    }
}
