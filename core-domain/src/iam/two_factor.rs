//! The second factor: codes of an authenticator app, and recovery codes for the case that the app is lost. A sign-in of
//! a user with a second factor waits for one of them.

use std::time::Duration;

use serde::Serialize;

use super::TokenHash;
use super::sign_in_delay::{FAILURE_RETENTION, sign_in_delay};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::opt_count;
use crate::kernel::{Entropy, Timestamp, UserId, record, secret_token};

/// Maximum number of wrong codes within [`FAILURE_WINDOW`]. In addition, a growing delay applies after wrong codes,
/// as after wrong passwords, because an attacker who tries codes already knows the password.
pub const MAX_FAILURES: usize = 5;

/// Maximum number of wrong codes that are stored. The delay is at its maximum before this number is reached.
const MAX_STORED_FAILURES: usize = 16;

/// Time for which a wrong code counts towards [`MAX_FAILURES`].
pub const FAILURE_WINDOW: Duration = Duration::from_secs(10 * 60);

/// Number of recovery codes that are generated together.
pub const RECOVERY_CODE_COUNT: usize = 10;

/// Time for which a sign-in waits for its second factor.
pub const CHALLENGE_LIFETIME: Duration = Duration::from_secs(10 * 60);

/// Maximum number of sign-ins per user that wait for their second factor. A further one removes the oldest.
pub const MAX_CHALLENGES: u32 = 5;

/// Number of characters in each half of a recovery code. Two halves of 8 base-62 characters have 95 bits.
const HALF_LENGTH: usize = 8;

/// The second factor of a user. Sign-ins require it only after the first correct code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct TwoFactor {
    /// The user who enrolled the factor.
    pub user_id: UserId,
    /// The secret of the authenticator app, encrypted.
    #[serde(skip)]
    pub sealed_secret: String,
    /// The time of the first correct code, from which on sign-ins require the factor; `null` before.
    pub confirmed_at: Option<Timestamp>,
    /// The time step of the last accepted code. Codes of this step and of earlier ones are refused.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "opt_count()"))]
    pub last_step: Option<i64>,
    /// The hashes of the unused recovery codes.
    #[serde(skip)]
    pub recovery_codes: Vec<String>,
    /// The times of recent wrong codes.
    #[serde(skip)]
    pub failures: Vec<Timestamp>,
    /// The time at which the factor was set up.
    pub created_at: Timestamp,
    /// The time of the last change.
    pub updated_at: Timestamp,
}

record! {
    TwoFactor as "two factor" by user_id, asked TwoFactorQuery;
    audited, touched updated_at;
}

/// Queries on second factors. They are normally read by their user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TwoFactorQuery {
    /// All second factors, oldest first.
    All,
}

impl TwoFactor {
    /// Returns whether sign-ins require the second factor.
    #[must_use]
    pub const fn is_confirmed(&self) -> bool {
        self.confirmed_at.is_some()
    }

    /// Returns the time for which every code is refused, even a correct one, because of too many wrong codes; `None` if
    /// codes are accepted.
    #[must_use]
    pub fn locked_for(&self, now: Timestamp) -> Option<Duration> {
        let remembered = recent_failures(&self.failures, now);
        let last = remembered.last()?;
        let count = u32::try_from(remembered.len()).unwrap_or(u32::MAX);
        let delayed_until = last.plus(sign_in_delay(count));
        // The lock ends when fewer than `MAX_FAILURES` of the failures still count.
        let over = remembered.len().checked_sub(MAX_FAILURES);
        let full_until = over.and_then(|over| remembered.get(over));
        let full_until = full_until.map(|oldest| oldest.plus(FAILURE_WINDOW));
        let until = full_until.map_or(delayed_until, |full| full.max(delayed_until));
        (now < until).then(|| until.since(now))
    }

    /// Returns the record after another wrong code.
    #[must_use]
    pub fn with_failure(&self, now: Timestamp) -> Self {
        let mut failures = recent_failures(&self.failures, now);
        failures.push(now);
        failures.drain(..failures.len().saturating_sub(MAX_STORED_FAILURES));
        Self {
            failures,
            updated_at: now,
            ..self.clone()
        }
    }

    /// Returns the record after the correct code of a time step.
    #[must_use]
    pub fn with_used_step(&self, now: Timestamp, step: i64) -> Self {
        Self {
            confirmed_at: self.confirmed_at.or(Some(now)),
            last_step: Some(step),
            failures: Vec::new(),
            updated_at: now,
            ..self.clone()
        }
    }

    /// Returns the record after the use of a recovery code; `None` if the code is not one of the unused ones.
    #[must_use]
    pub fn without_recovery_code(&self, now: Timestamp, code: &str) -> Option<Self> {
        let hash = recovery_hash(&self.user_id, code);
        let left = self.recovery_codes.iter().filter(|known| **known != hash);
        let left: Vec<String> = left.cloned().collect();
        if left.len() == self.recovery_codes.len() {
            return None;
        }
        Some(Self {
            recovery_codes: left,
            failures: Vec::new(),
            updated_at: now,
            ..self.clone()
        })
    }
}

/// Returns all failures until a day has passed since the last one, then none.
fn recent_failures(failures: &[Timestamp], now: Timestamp) -> Vec<Timestamp> {
    let counts = |last: &Timestamp| now.since(*last) < FAILURE_RETENTION;
    match failures.last().filter(|last| counts(last)) {
        Some(_) => failures.to_vec(),
        None => Vec::new(),
    }
}

/// Generates new recovery codes, which the user sees once.
#[must_use]
pub fn new_recovery_codes(entropy: &dyn Entropy) -> Vec<String> {
    let half = || secret_token(entropy, HALF_LENGTH);
    let code = |_| format!("{}-{}", half(), half());
    (0..RECOVERY_CODE_COUNT).map(code).collect()
}

/// Returns the hashes of recovery codes, which are stored instead of the codes.
#[must_use]
pub fn recovery_hashes(user: &UserId, codes: &[String]) -> Vec<String> {
    codes.iter().map(|code| recovery_hash(user, code)).collect()
}

/// Ignores all characters except letters and digits, so that spaces and dashes in a copied code do not matter.
fn recovery_hash(user: &UserId, code: &str) -> String {
    let letters: String = code.chars().filter(char::is_ascii_alphanumeric).collect();
    let hash = TokenHash::of(&format!("{user}:{letters}"));
    AsRef::<str>::as_ref(&hash).to_owned()
}

/// A sign-in that waits for its second factor. Its token is in a cookie and is never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct TwoFactorChallenge {
    /// The hash of the challenge token.
    pub token_hash: TokenHash,
    /// The user who signs in.
    pub user_id: UserId,
    /// Whether the browser keeps the session cookie after it is closed.
    pub remembered: bool,
    /// The time at which the first factor was verified.
    pub created_at: Timestamp,
    /// The time at which the challenge expires.
    pub expires_at: Timestamp,
}

record! {
    TwoFactorChallenge as "two factor challenge" by token_hash, asked TwoFactorChallengeQuery;
}

/// Queries on sign-ins that wait for their second factor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TwoFactorChallengeQuery {
    /// The challenges of a user, oldest first.
    OfUser(UserId),
    /// The challenges that have expired at this time, oldest first.
    ExpiredAt(Timestamp),
}

/// Time for which a device is trusted after the last sign-in with it.
pub const DEVICE_TRUST_LIFETIME: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Maximum number of trusted devices per user. A further one removes the oldest.
pub const MAX_TRUSTED_DEVICES: u32 = 20;

/// A device that its owner trusts, so that sign-ins with it need no second factor. Its token is in a cookie, changes
/// with each sign-in, and is never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct TrustedDevice {
    /// The hash of the device token.
    pub token_hash: TokenHash,
    /// The user who trusts the device.
    pub user_id: UserId,
    /// The IP address of the client when the device became trusted.
    pub ip_address: Option<String>,
    /// The `User-Agent` header of the client when the device became trusted.
    pub user_agent: Option<String>,
    /// The time at which the device became trusted.
    pub created_at: Timestamp,
    /// The time from which on sign-ins with the device require the second factor again.
    pub expires_at: Timestamp,
}

record! {
    TrustedDevice as "trusted device" by token_hash, asked TrustedDeviceQuery;
}

/// Queries on trusted devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustedDeviceQuery {
    /// The trusted devices of a user, oldest first.
    OfUser(UserId),
    /// The trusted devices that have expired at this time, oldest first.
    ExpiredAt(Timestamp),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::testing::SeededEntropy;

    use super::*;

    fn set_up() -> (TwoFactor, Vec<String>) {
        let (now, entropy) = (
            Timestamp::from_seconds(1_800_000_000),
            SeededEntropy::new(1),
        );
        let user_id = UserId::generate(now, &entropy);
        let codes = new_recovery_codes(&entropy);
        let two_factor = TwoFactor {
            sealed_secret: String::new(),
            confirmed_at: None,
            last_step: None,
            recovery_codes: recovery_hashes(&user_id, &codes),
            failures: Vec::new(),
            created_at: now,
            updated_at: now,
            user_id,
        };
        (two_factor, codes)
    }

    #[test]
    fn recovery_code_is_accepted_once_in_any_notation() {
        let (mut two_factor, codes) = set_up();
        let now = two_factor.created_at;
        assert_eq!(codes.len(), RECOVERY_CODE_COUNT);
        for code in &codes {
            let written = format!(" {} ", code.replace('-', " "));
            two_factor = two_factor.without_recovery_code(now, &written).unwrap();
            assert_eq!(two_factor.without_recovery_code(now, code), None);
        }
        assert!(two_factor.recovery_codes.is_empty());
        assert_eq!(two_factor.without_recovery_code(now, ""), None);
    }

    #[test]
    fn recovery_code_of_another_user_is_refused() {
        let (two_factor, codes) = set_up();
        let other = TwoFactor {
            user_id: UserId::parse("somebody-else").unwrap(),
            ..two_factor
        };
        assert_eq!(
            other.without_recovery_code(other.created_at, &codes[0]),
            None
        );
    }

    proptest! {
        #[test]
        fn at_most_five_codes_are_tried_in_ten_minutes_with_growing_delays(
            gaps in prop::collection::vec(0_u64..800, 1..60),
        ) {
            let (mut two_factor, _) = set_up();
            let mut now = two_factor.created_at;
            let mut tried: Vec<Timestamp> = Vec::new();
            for gap in gaps {
                now = now.plus(Duration::from_secs(gap));
                match two_factor.locked_for(now) {
                    Some(wait) => {
                        prop_assert!(wait > Duration::ZERO && wait <= sign_in_delay(u32::MAX));
                        let later = now.plus(wait);
                        prop_assert_eq!(two_factor.locked_for(later), None);
                    }
                    None => {
                        let count = u32::try_from(tried.len()).unwrap();
                        let pause = tried.last().map(|last| now.since(*last));
                        prop_assert!(pause.is_none_or(|pause| pause >= sign_in_delay(count)));
                        two_factor = two_factor.with_failure(now);
                        tried.push(now);
                    }
                }
                let lately = tried.iter().filter(|at| now.since(**at) < FAILURE_WINDOW);
                prop_assert!(lately.count() <= MAX_FAILURES);
                prop_assert!(two_factor.failures.len() <= MAX_STORED_FAILURES);
            }
            let day_later = now.plus(FAILURE_RETENTION);
            prop_assert_eq!(two_factor.locked_for(day_later), None);
        }
    }
}
