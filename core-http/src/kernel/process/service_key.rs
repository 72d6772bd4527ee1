//! The service key: the static credential of operators and services.

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The reason why a text is not a valid service key. Never contains the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceKeyError {
    /// The text is empty. This is an error and does not mean "unset".
    #[error("must not be empty; leave it out to run without authentication")]
    Empty,
    /// The text is shorter than [`ServiceKey::MIN_LENGTH`] and could be guessed.
    #[error(
        "must have at least {} characters; `openssl rand -hex 32` creates a suitable key",
        ServiceKey::MIN_LENGTH
    )]
    TooShort,
    /// The text contains characters that a header cannot contain unchanged.
    #[error("must contain only visible ASCII characters, without spaces")]
    NotVisible,
}

/// The SHA-256 of a presented secret. It is computed once for all comparisons.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// Hashes a secret.
    pub(crate) fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret).into())
    }
}

impl std::fmt::Debug for TokenDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenDigest(..)")
    }
}

/// The key of trusted callers. Only its hash is stored.
#[derive(Clone)]
pub struct ServiceKey(TokenDigest);

impl ServiceKey {
    /// The minimum length, in characters.
    pub const MIN_LENGTH: usize = 16;

    /// Validates and hashes a key.
    ///
    /// # Errors
    /// [`ServiceKeyError`] if the text is empty, too short, or has other characters than `!` to `~`.
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

    /// Returns whether the presented text is the key. The time of the comparison does not depend on their contents.
    #[must_use]
    pub fn is(&self, presented: &str) -> bool {
        self.has_digest(&TokenDigest::of(presented))
    }

    /// Returns whether the digest is that of the key.
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

    // That the comparison takes constant time follows from `subtle` and from digests, whose length is constant.
    #[test]
    fn line_23_only_the_exact_key_is_accepted() {
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
    fn invalid_keys_are_refused_and_not_shown_in_the_error() {
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
