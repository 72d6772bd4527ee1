//! Encryption of stored data that must be readable again: responses with secrets, mails with links, and signing keys. A
//! reader of the database cannot read them. Also secrets that are hidden in logs, and hexadecimal text.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};
use data_encoding::HEXLOWER;
use secrecy::{ExposeSecret, SecretString};

use super::{Entropy, Error, Result};

/// The length of the random nonce before each encrypted text, in bytes.
const NONCE_BYTES: usize = 24;

/// Encrypts with the key of the installation (XChaCha20-Poly1305). All nodes of an installation use the same key.
#[derive(Clone)]
pub struct Cipher {
    cipher: XChaCha20Poly1305,
    entropy: Arc<dyn Entropy>,
}

// Keeps the key out of logs.
impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cipher").finish_non_exhaustive()
    }
}

impl Cipher {
    /// Creates a cipher with this key.
    #[must_use]
    pub fn new(key: [u8; 32], entropy: Arc<dyn Entropy>) -> Self {
        Self {
            cipher: XChaCha20Poly1305::new(&Key::from(key)),
            entropy,
        }
    }

    /// Encrypts a text for the row with this id. The text can be decrypted only with the same id.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if the text is longer than the cipher supports (256 GiB).
    pub fn seal(&self, id: &str, text: &str) -> Result<String> {
        let mut nonce = [0; NONCE_BYTES];
        self.entropy.fill(&mut nonce);
        let payload = Payload {
            msg: text.as_bytes(),
            aad: id.as_bytes(),
        };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| cipher_error("cannot be encrypted"))?;
        Ok(STANDARD_NO_PAD.encode([&nonce[..], &sealed].concat()))
    }

    /// Decrypts a text that [`Cipher::seal`] encrypted for the row with this id.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` if the text was encrypted with another key or for another row, or is damaged.
    pub fn open(&self, id: &str, sealed: &str) -> Result<String> {
        let bytes = STANDARD_NO_PAD.decode(sealed);
        let bytes = bytes.map_err(|_| cipher_error("is not encrypted"))?;
        let Some((nonce, sealed)) = bytes.split_first_chunk::<NONCE_BYTES>() else {
            return Err(cipher_error("is too short"));
        };
        let payload = Payload {
            msg: sealed,
            aad: id.as_bytes(),
        };
        let opened = self.cipher.decrypt(&XNonce::from(*nonce), payload);
        let opened = opened
            .map_err(|_| cipher_error("was encrypted with another key or for another row"))?;
        String::from_utf8(opened).map_err(|_| cipher_error("is not UTF-8"))
    }
}

fn cipher_error(why: &str) -> Error {
    Error::Internal(format!("an encrypted text {why}"))
}

/// A text that must not appear in logs. Its `Debug` output hides the text, and its memory is overwritten when it is
/// dropped.
#[derive(Clone, Debug)]
pub struct Secret(SecretString);

impl Secret {
    /// Wraps a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// Returns the text. Use it only to compare or hash the text, or to send it to its issuer.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.expose() == other.expose()
    }
}

impl Eq for Secret {}

/// Returns the bytes in lower-case hexadecimal, two digits for each byte.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

/// Decodes a digest of 32 bytes in the format of [`hex`]. Returns `None` if the text is not 64 lower-case digits.
#[must_use]
pub fn parse_hex(text: &str) -> Option<[u8; 32]> {
    let bytes = HEXLOWER.decode(text.as_bytes()).ok()?;
    bytes.try_into().ok()
}

/// Appends the bytes in the format of [`hex`].
pub fn push_hex(text: &mut String, bytes: &[u8]) {
    HEXLOWER.encode_append(bytes, text);
}

#[cfg(test)]
mod tests {
    use crate::testing::SeededEntropy;

    use super::*;

    fn cipher(key: u8) -> Cipher {
        Cipher::new([key; 32], Arc::new(SeededEntropy::new(1)))
    }

    #[test]
    fn a_text_decrypts_only_with_its_key_and_the_id_of_its_row() {
        let sealed = cipher(1).seal("row", "the secret").unwrap();
        assert!(!sealed.contains("secret"));
        assert_eq!(cipher(1).open("row", &sealed).unwrap(), "the secret");
        assert!(cipher(2).open("row", &sealed).is_err());
        assert!(cipher(1).open("other", &sealed).is_err());
        for damaged in ["", "!", &sealed[..20], &sealed[2..]] {
            assert!(cipher(1).open("row", damaged).is_err(), "{damaged}");
        }
    }

    #[test]
    fn equal_texts_are_encrypted_differently() {
        let cipher = cipher(1);
        assert_ne!(
            cipher.seal("row", "x").unwrap(),
            cipher.seal("row", "x").unwrap()
        );
    }

    #[test]
    fn hex_has_two_digits_for_each_byte() {
        assert_eq!(hex(&[]), "");
        assert_eq!(hex(&[0, 9, 10, 255]), "00090aff");
    }

    #[test]
    fn only_lower_case_digests_are_parsed() {
        let digest = [0xab; 32];
        assert_eq!(parse_hex(&hex(&digest)), Some(digest));
        let upper = hex(&digest).to_uppercase();
        for text in [
            "",
            "00",
            &"0".repeat(63),
            &"g".repeat(64),
            &"é".repeat(32),
            &upper,
        ] {
            assert_eq!(parse_hex(text), None, "{text}");
        }
    }
}
