//! The static key of operators and of services.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// Why a text is not a service key. Never contains the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceKeyError {
    /// It is empty, which is a mistake and does not mean "unset".
    #[error("must not be empty; leave it out to run without authentication")]
    Empty,
    /// It could be guessed.
    #[error(
        "must have at least {} characters; `openssl rand -hex 32` makes a good one",
        ServiceKey::MIN_LENGTH
    )]
    TooShort,
    /// It cannot be sent in a header as it is.
    #[error("must be of visible ASCII characters without spaces")]
    NotVisible,
}

/// The SHA-256 of a presented secret, so that it is computed once for whatever compares it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TokenDigest([u8; 32]);

impl TokenDigest {
    pub(crate) fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret).into())
    }
}

impl std::fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenDigest(..)")
    }
}

/// The key of trusted callers, kept as a hash alone.
#[derive(Clone)]
pub struct ServiceKey(TokenDigest);

impl ServiceKey {
    /// The minimum length, in characters.
    pub const MIN_LENGTH: usize = 16;

    /// Hashes the key.
    ///
    /// # Errors
    /// [`ServiceKeyError`] for a text that is too short or has other characters than `!` to `~`.
    pub fn new(key: &str) -> Result<Self, ServiceKeyError> {
        if key.is_empty() {
            return Err(ServiceKeyError::Empty);
        }
        if !key.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(ServiceKeyError::NotVisible);
        }
        if key.len() < Self::MIN_LENGTH {
            return Err(ServiceKeyError::TooShort);
        }
        Ok(Self(TokenDigest::of(key)))
    }

    /// Tells whether this is the key, in a time that does not depend on either.
    #[must_use]
    pub fn is(&self, presented: &str) -> bool {
        self.has_digest(&TokenDigest::of(presented))
    }

    /// Tells the same of a digest.
    pub(crate) fn has_digest(&self, presented: &TokenDigest) -> bool {
        self.0.0.ct_eq(&presented.0).into()
    }
}

impl std::fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServiceKey(..)")
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn only_the_key_itself_is_the_key() {
        let key = ServiceKey::new("0123456789abcdef").unwrap();
        assert!(key.is("0123456789abcdef"));
        for other in [
            "",
            "0123456789abcde",
            "0123456789abcdefg",
            "0123456789ABCDEF",
        ] {
            assert!(!key.is(other), "{other}");
        }
    }

    #[test]
    fn a_key_that_could_be_guessed_or_not_be_sent_is_refused_without_showing_it() {
        for (text, expected) in [
            ("", ServiceKeyError::Empty),
            ("sesame", ServiceKeyError::TooShort),
            ("fifteen-letters", ServiceKeyError::TooShort),
            ("sixteen letters!", ServiceKeyError::NotVisible),
            ("schl\u{fc}ssel-schl\u{fc}ssel", ServiceKeyError::NotVisible),
            ("sixteen-letters\n", ServiceKeyError::NotVisible),
        ] {
            let error = ServiceKey::new(text).unwrap_err();
            assert_eq!(error, expected, "{text}");
            assert!(text.is_empty() || !error.to_string().contains(text));
        }
        assert!(ServiceKey::new("sixteen-letters!").is_ok());
    }
}
