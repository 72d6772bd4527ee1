//! One-time codes that follow the clock (RFC 6238: SHA-1, 6 digits, a step of 30 seconds).

use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

use super::credential::percent_encoded;
use crate::kernel::Timestamp;

/// How long a code is shown, in seconds.
const STEP: i64 = 30;

/// How many steps a clock may be ahead or behind.
const SKEW: i64 = 1;

/// One more than the largest code.
const MODULUS: u32 = 1_000_000;

/// Digits of a code.
const DIGITS: usize = 6;

/// What codes are made from: known to the person's authenticator and, encrypted, to us.
#[derive(Clone)]
pub struct TotpSecret(String);

// The secret stays out of logs.
impl std::fmt::Debug for TotpSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TotpSecret(..)")
    }
}

impl TotpSecret {
    /// A secret whose bytes are those of this text.
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// The text the secret is.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The code of a step.
    fn code(&self, step: i64) -> u32 {
        // HMAC takes keys of any length, so there always is a code.
        let Ok(mac) = <Hmac<Sha1> as KeyInit>::new_from_slice(self.0.as_bytes()) else {
            return MODULUS;
        };
        let digest = mac.chain_update(step.to_be_bytes()).finalize().into_bytes();
        let offset = usize::from(digest.last().copied().unwrap_or(0) & 0x0f);
        let truncated = digest.iter().skip(offset).take(4);
        let number = truncated.fold(0_u32, |number, byte| (number << 8) | u32::from(*byte));
        (number & 0x7fff_ffff) % MODULUS
    }

    /// The code that an authenticator with the secret shows at an instant.
    #[must_use]
    pub fn code_at(&self, now: Timestamp) -> String {
        format!("{:06}", self.code(step_at(now)))
    }

    /// The step a code is of, at an instant: one that is not too far off and comes after the last that was used. The time
    /// it takes says nothing of the codes.
    #[must_use]
    pub fn step_of(&self, code: TotpCode, now: Timestamp, last_used: Option<i64>) -> Option<i64> {
        let current = step_at(now);
        let mut found = None;
        for step in current - SKEW..=current + SKEW {
            let unused = last_used.is_none_or(|last| step > last);
            if (self.code(step) == code.0) & unused {
                found = Some(step);
            }
        }
        found
    }

    /// What an authenticator reads from a picture: the secret, for whom it is, and at whom.
    #[must_use]
    pub fn uri(&self, issuer: &str, account: &str) -> String {
        let issuer = percent_encoded(issuer);
        let account = percent_encoded(account);
        let secret = base32(self.0.as_bytes());
        format!(
            "otpauth://totp/{issuer}:{account}?secret={secret}&issuer={issuer}&algorithm=SHA1&digits={DIGITS}&period={STEP}"
        )
    }
}

const fn step_at(now: Timestamp) -> i64 {
    now.seconds().div_euclid(STEP)
}

/// A code as somebody entered it: six digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TotpCode(u32);

// A code is good for a while: it stays out of logs as well.
impl std::fmt::Debug for TotpCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TotpCode(..)")
    }
}

impl TotpCode {
    /// Reads a code; spaces between its digits, as some authenticators show them, are left out.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|c| *c != ' ').collect();
        let good = digits.len() == DIGITS && digits.bytes().all(|b| b.is_ascii_digit());
        good.then(|| digits.parse().ok().map(Self))?
    }
}

/// RFC 4648, without padding.
fn base32(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let mut text = String::with_capacity(bytes.len().div_ceil(5) * 8);
    for chunk in bytes.chunks(5) {
        let mut group = [0_u8; 8];
        group[3..3 + chunk.len()].copy_from_slice(chunk);
        let number = u64::from_be_bytes(group);
        let letters = (chunk.len() * 8).div_ceil(5);
        for position in 0..letters {
            let index = (number >> (35 - 5 * position)) & 31;
            text.extend(
                LETTERS
                    .get(usize::try_from(index).unwrap_or(0))
                    .map(|b| char::from(*b)),
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rfc() -> TotpSecret {
        TotpSecret::new("12345678901234567890".to_owned())
    }

    #[test]
    fn codes_are_those_of_rfc_6238() {
        // Appendix B; the last six of its eight digits.
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            let at = Timestamp::from_seconds(seconds);
            assert_eq!(rfc().code_at(at), code, "{seconds}");
        }
    }

    #[test]
    fn codes_are_those_of_rfc_4226() {
        // Appendix D.
        let codes = [
            755_224, 287_082, 359_152, 969_429, 338_314, 254_676, 287_922, 162_583, 399_871,
            520_489,
        ];
        for (step, code) in (0..).zip(codes) {
            assert_eq!(rfc().code(step), code);
        }
    }

    #[test]
    fn base32_is_that_of_rfc_4648() {
        for (plain, encoded) in [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foob", "MZXW6YQ"),
            ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI"),
        ] {
            assert_eq!(base32(plain.as_bytes()), encoded);
        }
    }

    #[test]
    fn a_code_is_six_digits_with_or_without_spaces() {
        for good in ["000000", "123456", "123 456", " 1 2 3 4 5 6 "] {
            assert!(TotpCode::parse(good).is_some(), "{good}");
        }
        for bad in [
            "",
            "12345",
            "1234567",
            "12345a",
            "+12345",
            "-12345",
            "１２３４５６",
        ] {
            assert!(TotpCode::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn the_uri_names_issuer_and_account_and_holds_the_secret_in_base32() {
        let uri = rfc().uri("iam.example.org", "ada+x@example.org");
        let expected = "otpauth://totp/iam.example.org:ada%2Bx%40example.org\
            ?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=iam.example.org&algorithm=SHA1&digits=6&period=30";
        assert_eq!(uri, expected);
        assert!(!format!("{:?}", rfc()).contains("1234"));
    }

    proptest! {
        #[test]
        fn a_step_counts_once_and_only_while_it_is_near(
            moves in prop::collection::vec((0_i64..90, -3_i64..=3), 1..60),
        ) {
            let secret = rfc();
            let mut now = Timestamp::from_seconds(1_800_000_000);
            let mut last = None;
            let mut used = std::collections::BTreeSet::new();
            for (seconds, offset) in moves {
                now = now.plus(std::time::Duration::from_secs(seconds.unsigned_abs()));
                let step = step_at(now) + offset;
                let code = TotpCode::parse(&format!("{:06}", secret.code(step))).unwrap();
                let found = secret.step_of(code, now, last);
                let near = offset.abs() <= 1;
                let fresh = last.is_none_or(|last| step > last);
                if near && fresh {
                    // Two steps can share a code: then the later one counts.
                    let counted = found.unwrap();
                    prop_assert!(counted >= step && secret.code(counted) == code.0);
                } else if let Some(found) = found {
                    prop_assert!(found != step && secret.code(found) == code.0);
                }
                if let Some(step) = found {
                    prop_assert!(used.insert(step), "a step counted twice");
                    prop_assert!((step - step_at(now)).abs() <= 1);
                    prop_assert!(last.is_none_or(|last| step > last));
                    last = Some(step);
                }
            }
        }
    }
}
