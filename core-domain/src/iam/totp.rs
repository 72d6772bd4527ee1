//! Time-based one-time passwords (RFC 6238: SHA-1, 6 digits, time steps of 30 seconds).

use data_encoding::BASE32_NOPAD;
use totp_rs::{Algorithm, Builder};

use super::credential::percent_encoded;
use crate::kernel::Timestamp;

/// Length of a time step, in seconds.
const STEP: u64 = 30;

/// Number of time steps by which a clock may be ahead or behind.
const SKEW: i64 = 1;

/// Number of possible codes: 10 to the power of 6. No user can enter it.
const MODULUS: u32 = 1_000_000;

/// Number of digits of a code.
const DIGITS: u8 = 6;

/// The secret from which codes are computed. The user's authenticator app has it, and the server stores it encrypted.
#[derive(Clone)]
pub struct TotpSecret(String);

// The `Debug` output hides the secret, so that it does not appear in logs.
impl std::fmt::Debug for TotpSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TotpSecret(..)")
    }
}

impl TotpSecret {
    /// Creates a secret from the bytes of this text.
    #[must_use]
    pub const fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns the text of the secret.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns the code of a time step.
    fn code(&self, step: i64) -> TotpCode {
        let totp = Builder::new()
            .with_algorithm(Algorithm::SHA1)
            .with_digits(DIGITS)
            .with_step_duration(STEP)
            .with_secret(self.0.as_bytes())
            .build_noncompliant();
        let second = u64::try_from(step).unwrap_or(0).saturating_mul(STEP);
        TotpCode::of_text(&totp.generate(second).to_string())
    }

    /// Returns the code that an authenticator app with this secret shows at the given time.
    #[must_use]
    pub fn code_at(&self, now: Timestamp) -> String {
        format!("{:06}", self.code(step_at(now)).0)
    }

    /// Finds the time step that a code belongs to. The step must be at most one step away from the current one, and
    /// later than the last used step. The running time does not depend on the codes.
    #[must_use]
    pub fn step_of(&self, code: TotpCode, now: Timestamp, last_used: Option<i64>) -> Option<i64> {
        let current = step_at(now);
        let mut found = None;
        for step in current - SKEW..=current + SKEW {
            let unused = last_used.is_none_or(|last| step > last);
            if (self.code(step) == code) & unused {
                found = Some(step);
            }
        }
        found
    }

    /// Returns the URI for the QR code that an authenticator app scans. It contains the secret, the account and the
    /// issuer.
    #[must_use]
    pub fn uri(&self, issuer: &str, account: &str) -> String {
        let issuer = percent_encoded(issuer);
        let account = percent_encoded(account);
        let secret = BASE32_NOPAD.encode(self.0.as_bytes());
        format!(
            "otpauth://totp/{issuer}:{account}?secret={secret}&issuer={issuer}&algorithm=SHA1&digits={DIGITS}&period={STEP}"
        )
    }
}

const fn step_at(now: Timestamp) -> i64 {
    now.seconds().div_euclid(STEP as i64)
}

/// A code that a user entered: six digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct TotpCode(u32);

// A code is valid for up to 90 seconds, so the `Debug` output hides it too.
impl std::fmt::Debug for TotpCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TotpCode(..)")
    }
}

impl TotpCode {
    /// Parses a code. Ignores spaces between the digits, which some authenticator apps show.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits: String = text.chars().filter(|c| *c != ' ').collect();
        let good =
            digits.len() == usize::from(DIGITS) && digits.bytes().all(|b| b.is_ascii_digit());
        good.then(|| Self::of_text(&digits))
    }

    /// Returns the code that these digits write.
    fn of_text(digits: &str) -> Self {
        Self(digits.parse().unwrap_or(MODULUS))
    }
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
        // Appendix B of RFC 6238; the last six of the eight digits.
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
        // Appendix D of RFC 4226.
        let codes = [
            755_224, 287_082, 359_152, 969_429, 338_314, 254_676, 287_922, 162_583, 399_871,
            520_489,
        ];
        for (step, code) in (0..).zip(codes) {
            assert_eq!(rfc().code(step), TotpCode(code));
        }
    }

    #[test]
    fn code_has_six_digits_with_or_without_spaces() {
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
    fn uri_contains_issuer_account_and_base32_secret() {
        let uri = rfc().uri("iam.example.org", "ada+x@example.org");
        let expected = "otpauth://totp/iam.example.org:ada%2Bx%40example.org\
            ?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=iam.example.org&algorithm=SHA1&digits=6&period=30";
        assert_eq!(uri, expected);
        assert!(!format!("{:?}", rfc()).contains("1234"));
    }

    proptest! {
        #[test]
        fn each_time_step_is_accepted_once_and_only_near_the_current_one(
            moves in prop::collection::vec((0_i64..90, -3_i64..=3), 1..60),
        ) {
            let secret = rfc();
            let mut now = Timestamp::from_seconds(1_800_000_000);
            let mut last = None;
            let mut used = std::collections::BTreeSet::new();
            for (seconds, offset) in moves {
                now = now.plus(std::time::Duration::from_secs(seconds.unsigned_abs()));
                let step = step_at(now) + offset;
                let code = secret.code(step);
                let found = secret.step_of(code, now, last);
                let near = offset.abs() <= 1;
                let fresh = last.is_none_or(|last| step > last);
                if near && fresh {
                    // Two steps can have the same code; then the later one is used.
                    let counted = found.unwrap();
                    prop_assert!(counted >= step && secret.code(counted) == code);
                } else if let Some(found) = found {
                    prop_assert!(found != step && secret.code(found) == code);
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
