//! The entropy port: the source of random bytes. The domain creates no random numbers itself.

/// A source of random bytes. Outside of tests it must be cryptographically secure.
pub trait Entropy: Send + Sync + std::fmt::Debug {
    /// Fills the whole buffer with random bytes.
    fn fill(&self, buffer: &mut [u8]);
}

/// The characters of generated secrets.
pub(crate) const BASE62: &[u8; 62] =
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// The length of secrets that people do not type: 43 base62 characters hold 256 bits.
pub const TOKEN_LENGTH: usize = 43;

/// Generates a secret of `length` characters of `[A-Za-z0-9]`, each uniformly random (5.95 bits per character).
#[must_use]
pub fn secret_token(entropy: &dyn Entropy, length: usize) -> String {
    let mut token = String::with_capacity(length);
    let mut buffer = [0_u8; 64];
    while token.len() < length {
        entropy.fill(&mut buffer);
        // 248 is 4 * 62. Larger bytes are skipped because they would favour the first characters.
        let letters = buffer
            .iter()
            .filter(|b| **b < 248)
            .map(|b| BASE62[usize::from(b % 62)]);
        token.extend(letters.take(length - token.len()).map(char::from));
    }
    token
}

/// Returns a random number from 0 to `most`, both included. The bias is below one in 10^10 for `most` up to 10^9.
#[must_use]
pub fn random_up_to(entropy: &dyn Entropy, most: u64) -> u64 {
    let mut random = [0_u8; 8];
    entropy.fill(&mut random);
    u64::from_le_bytes(random) % most.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SeededEntropy;

    #[test]
    fn tokens_have_the_requested_length_and_differ() {
        let entropy = SeededEntropy::new(7);
        let (first, second) = (
            secret_token(&entropy, TOKEN_LENGTH),
            secret_token(&entropy, TOKEN_LENGTH),
        );
        assert_eq!(first.len(), 43);
        assert!(first.bytes().all(|b| b.is_ascii_alphanumeric()));
        assert_ne!(first, second);
    }
}
