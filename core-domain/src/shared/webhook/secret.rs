//! What webhooks are signed with, as Standard Webhooks have it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::kernel::{Entropy, Timestamp};

/// What every secret begins with.
const PREFIX: &str = "whsec_";

/// The bytes of a secret of ours; others have 24 to 64.
const BYTES: usize = 32;

/// A secret that receivers check signatures with: `whsec_` and the base64 of its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(String);

// The secret stays out of logs.
impl std::fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WebhookSecret(..)")
    }
}

impl WebhookSecret {
    /// A new secret.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let mut bytes = [0; BYTES];
        entropy.fill(&mut bytes);
        Self(format!("{PREFIX}{}", STANDARD.encode(bytes)))
    }

    /// Reads the text form; `None` when it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = bytes(text)?;
        (24..=64)
            .contains(&bytes.len())
            .then(|| Self(text.to_owned()))
    }

    /// The text, for whoever receives what is signed with it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The signature of a message, `v1,` in front: HMAC-SHA256 of its id, the instant of the attempt in seconds, and its
    /// body, joined with dots.
    #[must_use]
    pub fn sign(&self, id: &str, at: Timestamp, body: &str) -> String {
        let key = bytes(&self.0).unwrap_or_default();
        // HMAC takes keys of every length.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&key) else {
            return String::new();
        };
        for part in [id, ".", &at.seconds().to_string(), ".", body] {
            mac.update(part.as_bytes());
        }
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text.strip_prefix(PREFIX)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SeededEntropy;

    #[test]
    fn a_message_is_signed_as_the_standard_signs_its_example() {
        let secret = WebhookSecret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let at = Timestamp::from_seconds(1_614_265_330);
        let signature = secret.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            at,
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_has_32_random_bytes_reads_back_and_its_debug_form_hides_it() {
        let entropy = SeededEntropy::new(1);
        let secret = WebhookSecret::generate(&entropy);
        assert_eq!(WebhookSecret::parse(secret.expose()), Some(secret.clone()));
        assert_ne!(WebhookSecret::generate(&entropy), secret);
        assert_eq!(
            (secret.expose().len(), format!("{secret:?}")),
            (6 + 44, "WebhookSecret(..)".to_owned())
        );
        let of = |bytes: usize| format!("whsec_{}", STANDARD.encode(vec![7; bytes]));
        for (text, good) in [
            (of(24), true),
            (of(64), true),
            (of(23), false),
            (of(65), false),
            ("whsec_!".to_owned(), false),
            (of(24)[6..].to_owned(), false),
        ] {
            assert_eq!(WebhookSecret::parse(&text).is_some(), good, "{text}");
        }
    }
}
