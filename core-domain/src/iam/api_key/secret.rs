//! The text of a key: `core_`, a prefix of its maker's if they asked for one, 43 random characters, and a checksum.

use super::super::TokenHash;
use crate::kernel::{BASE62, Entropy, TOKEN_LENGTH, TextError, secret_token, text};

/// What every key begins with.
pub const API_KEY_PREFIX: &str = "core_";

/// The characters of the checksum: 6 of 62 hold the 32 bits of a CRC.
const CHECKSUM: usize = 6;

/// The most characters of a maker's prefix.
const LONGEST_PREFIX: usize = 32;

/// How much of a key is kept for people to recognise it by.
const START: usize = 12;

text! {
    /// What the maker of a key wants it to begin with, after `core_`: 1 to 32 characters `[A-Za-z0-9_-]`.
    KeyPrefix, prefix, {
        "type": "string", "minLength": 1, "maxLength": LONGEST_PREFIX,
        "pattern": "^[A-Za-z0-9_-]+$",
        "examples": ["ci_"],
    }
}

fn prefix(text: &str) -> Result<String, TextError> {
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    match text.len() {
        0 => Err(TextError::TooShort),
        length if length > LONGEST_PREFIX => Err(TextError::TooLong),
        _ if text.bytes().all(fits) => Ok(text.to_owned()),
        _ => Err(TextError::Malformed),
    }
}

/// The secret text of a key. It is shown to its maker once; what is stored of it is its hash.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKeySecret(String);

// The secret stays out of logs.
impl std::fmt::Debug for ApiKeySecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ApiKeySecret(..)")
    }
}

impl ApiKeySecret {
    /// A new secret.
    #[must_use]
    pub fn generate(prefix: Option<&KeyPrefix>, entropy: &dyn Entropy) -> Self {
        let prefix = prefix.map_or("", KeyPrefix::as_str);
        let body = format!(
            "{API_KEY_PREFIX}{prefix}{}",
            secret_token(entropy, TOKEN_LENGTH)
        );
        let checksum = checksum(&body);
        Self(body + &checksum)
    }

    /// Reads a text that is presented as a key; `None` when it cannot be one: its checksum says so of one that was
    /// mistyped or made up, so that nobody looks for it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(API_KEY_PREFIX)?;
        let length = rest.len().checked_sub(TOKEN_LENGTH + CHECKSUM)?;
        // Only after this are positions those of characters.
        if !text.is_ascii() || length > LONGEST_PREFIX {
            return None;
        }
        let (own, secret) = rest.split_at(length);
        let (body, found) = text.split_at(text.len() - CHECKSUM);
        let good = (own.is_empty() || prefix(own).is_ok())
            && secret.bytes().all(|b| b.is_ascii_alphanumeric())
            && checksum(body) == found;
        good.then(|| Self(text.to_owned()))
    }

    /// The text, to be shown to its maker.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// What the key is recognised by.
    #[must_use]
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(&self.0)
    }

    /// The first 12 characters, for people to recognise it by.
    #[must_use]
    pub fn start(&self) -> String {
        self.0.chars().take(START).collect()
    }
}

/// The CRC-32 of a text in base 62, most significant digit first.
fn checksum(text: &str) -> String {
    let mut rest = crc32(text.as_bytes());
    let mut digits = [0_u8; CHECKSUM];
    for digit in digits.iter_mut().rev() {
        *digit = BASE62[usize::try_from(rest % 62).unwrap_or_default()];
        rest /= 62;
    }
    digits.into_iter().map(char::from).collect()
}

/// The CRC-32 of IEEE 802.3, as of zip and Ethernet.
fn crc32(bytes: &[u8]) -> u32 {
    let crc = bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            let shifted = crc >> 1;
            if crc & 1 == 1 {
                shifted ^ 0xEDB8_8320
            } else {
                shifted
            }
        })
    });
    !crc
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::SeededEntropy;

    #[test]
    fn the_checksum_is_the_crc_32_everybody_knows() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(checksum("123456789"), "DtjbWO");
        assert_eq!(checksum("").len(), CHECKSUM);
    }

    #[test]
    fn a_key_is_core_then_43_characters_then_a_checksum_and_its_debug_form_hides_it() {
        let key = ApiKeySecret::generate(None, &SeededEntropy::new(1));
        assert_eq!(key.expose().len(), 5 + 43 + 6);
        assert_eq!(key.start(), key.expose()[..12]);
        assert_eq!(format!("{key:?}"), "ApiKeySecret(..)");
    }

    proptest! {
        #[test]
        fn every_key_that_is_made_is_read_back(seed in any::<u64>(), prefix in prop::option::of(any::<KeyPrefix>())) {
            let key = ApiKeySecret::generate(prefix.as_ref(), &SeededEntropy::new(seed));
            let prefix = prefix.as_ref().map_or("", KeyPrefix::as_str);
            let start = format!("core_{prefix}");
            prop_assert!(key.expose().starts_with(&start));
            prop_assert_eq!(ApiKeySecret::parse(key.expose()), Some(key));
        }

        #[test]
        fn a_key_with_one_character_changed_missing_or_swapped_is_none(
            seed in any::<u64>(), at in 5_usize..54, other in "[A-Za-z0-9]",
        ) {
            let key = ApiKeySecret::generate(None, &SeededEntropy::new(seed));
            let text = key.expose();
            let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
            prop_assert_eq!(ApiKeySecret::parse(&changed).is_some(), changed == text);
            let missing = format!("{}{}", &text[..at], &text[at + 1..]);
            prop_assert_eq!(ApiKeySecret::parse(&missing), None);
            if at + 1 < text.len() {
                let (one, two) = (&text[at..=at], &text[at + 1..at + 2]);
                let swapped = format!("{}{two}{one}{}", &text[..at], &text[at + 2..]);
                prop_assert_eq!(ApiKeySecret::parse(&swapped).is_some(), one == two);
            }
        }

        #[test]
        fn any_text_is_read_without_harm(text in "(core_)?\\PC{0,60}") {
            prop_assert_eq!(ApiKeySecret::parse(&text), None);
        }
    }
}
