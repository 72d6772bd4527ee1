//! Encrypts what is stored and must be read again: answers that hold secrets, mails with links, signing keys. Whoever reads
//! the database reads none of them.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{Key, XChaCha20Poly1305, XNonce};

use super::{Entropy, Error, Result};

const NONCE_BYTES: usize = 24;

/// Encrypts with the installation's key (XChaCha20-Poly1305). The same key on every node.
#[derive(Clone)]
pub struct Cipher {
    cipher: XChaCha20Poly1305,
    entropy: Arc<dyn Entropy>,
}

// The key stays out of logs.
impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cipher").finish_non_exhaustive()
    }
}

impl Cipher {
    /// A cipher with this key.
    #[must_use]
    pub fn new(key: [u8; 32], entropy: Arc<dyn Entropy>) -> Self {
        Self {
            cipher: XChaCha20Poly1305::new(&Key::from(key)),
            entropy,
        }
    }

    /// Encrypts a text, bound to the id of the row it is stored in.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` for a text no cipher takes: one of 256 GiB.
    pub fn seal(&self, id: &str, text: &str) -> Result<String> {
        let mut nonce = [0; NONCE_BYTES];
        self.entropy.fill(&mut nonce);
        let payload = Payload {
            msg: text.as_bytes(),
            aad: id.as_bytes(),
        };
        let sealed = self.cipher.encrypt(&XNonce::from(nonce), payload);
        let sealed = sealed.map_err(|_| broken("cannot be encrypted"))?;
        Ok(STANDARD_NO_PAD.encode([&nonce[..], &sealed].concat()))
    }

    /// Decrypts what [`Cipher::seal`] encrypted.
    ///
    /// # Errors
    /// `INTERNAL_ERROR` when it was encrypted with another key, or for another row.
    pub fn open(&self, id: &str, sealed: &str) -> Result<String> {
        let bytes = STANDARD_NO_PAD.decode(sealed);
        let bytes = bytes.map_err(|_| broken("is not encrypted"))?;
        let Some((nonce, sealed)) = bytes.split_first_chunk::<NONCE_BYTES>() else {
            return Err(broken("is too short"));
        };
        let payload = Payload {
            msg: sealed,
            aad: id.as_bytes(),
        };
        let opened = self.cipher.decrypt(&XNonce::from(*nonce), payload);
        let opened = opened.map_err(|_| broken("was encrypted with another key"))?;
        String::from_utf8(opened).map_err(|_| broken("is no text"))
    }
}

fn broken(why: &str) -> Error {
    Error::Internal(format!("an encrypted text {why}"))
}

/// A text that must not be shown: its `Debug` form hides it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. Only for comparing, hashing, and sending to whoever issued it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

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
    use crate::testing::SeededEntropy;

    use super::*;

    fn cipher(key: u8) -> Cipher {
        Cipher::new([key; 32], Arc::new(SeededEntropy::new(1)))
    }

    #[test]
    fn a_text_is_readable_with_its_key_in_its_row_alone() {
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
    fn the_same_text_is_never_encrypted_alike() {
        let cipher = cipher(1);
        assert_ne!(
            cipher.seal("row", "x").unwrap(),
            cipher.seal("row", "x").unwrap()
        );
    }

    #[test]
    fn every_byte_is_two_digits() {
        assert_eq!(hex(&[]), "");
        assert_eq!(hex(&[0, 9, 10, 255]), "00090aff");
    }
}
