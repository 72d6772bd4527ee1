//! The operating system's randomness. No other module draws random bytes.

use core_domain::kernel::Entropy;
use rand::Rng;

/// Cryptographically secure random bytes, seeded and reseeded from the operating system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the adapter behind the Entropy port"
    )]
    fn fill(&self, buffer: &mut [u8]) {
        rand::rng().fill_bytes(buffer);
    }
}
