//! Bytes as text.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// The bytes in lower-case hexadecimal, two digits each.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    push_hex(&mut text, bytes);
    text
}

/// Appends the bytes as [`hex`] writes them.
pub fn push_hex(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        for nibble in [byte >> 4, byte & 0xf] {
            text.push(char::from(DIGITS[usize::from(nibble)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_two_digits() {
        assert_eq!(hex(&[]), "");
        assert_eq!(hex(&[0, 9, 10, 255]), "00090aff");
    }
}
