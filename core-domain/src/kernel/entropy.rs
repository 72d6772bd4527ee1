//! The entropy port: where random bits come from. Nothing in the domain draws random numbers by itself.

use std::sync::Mutex;

/// A source of random bytes. Outside tests it must be fit for secrets.
pub trait Entropy: Send + Sync + std::fmt::Debug {
    /// Fills the whole buffer with random bytes.
    fn fill(&self, buffer: &mut [u8]);
}

/// The letters of secrets we hand out.
const BASE62: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// A secret of `length` characters `[A-Za-z0-9]`, each drawn without bias (5.95 bits a character; 43 hold 256 bits).
#[must_use]
pub fn secret_token(entropy: &dyn Entropy, length: usize) -> String {
    let mut token = String::with_capacity(length);
    let mut buffer = [0_u8; 64];
    while token.len() < length {
        entropy.fill(&mut buffer);
        // 248 = 4 * 62: larger bytes would favour the first letters.
        let letters = buffer
            .iter()
            .filter(|b| **b < 248)
            .map(|b| BASE62[usize::from(b % 62)]);
        token.extend(letters.take(length - token.len()).map(char::from));
    }
    token
}

/// Reproducible entropy for tests: the same seed gives the same bytes. **Never fit for secrets.**
#[derive(Debug)]
pub struct SeededEntropy(Mutex<u64>);

impl SeededEntropy {
    /// Starts the sequence of this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(Mutex::new(seed))
    }
}

impl Entropy for SeededEntropy {
    fn fill(&self, buffer: &mut [u8]) {
        let mut state = self
            .0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        for chunk in buffer.chunks_mut(8) {
            // SplitMix64
            *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = *state;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^= z >> 31;
            chunk.copy_from_slice(&z.to_le_bytes()[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_have_the_length_asked_for_and_differ() {
        let entropy = SeededEntropy::new(7);
        let (first, second) = (secret_token(&entropy, 43), secret_token(&entropy, 43));
        assert_eq!(first.len(), 43);
        assert!(first.bytes().all(|b| b.is_ascii_alphanumeric()));
        assert_ne!(first, second);
    }
}
