//! The second factor: codes of an authenticator, and codes to recover with when it is lost. A sign-in of somebody who has
//! one waits until one of them was shown.

use std::time::Duration;

use serde::Serialize;

use super::TokenHash;
use super::sign_in_delay::{FAILURES_FORGOTTEN_AFTER, sign_in_delay};
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::opt_count;
use crate::kernel::{Entropy, Timestamp, UserId, record, secret_token};

/// How many codes may be wrong within [`FAILURES_COUNT_FOR`]. Besides, the account waits longer and longer after each, as
/// after wrong passwords: whoever tries codes knows the password.
pub const MAX_FAILURES: usize = 5;

/// How many wrong codes are remembered: the wait grows no more before that.
const MAX_REMEMBERED: usize = 16;

/// How long a wrong code counts in [`MAX_FAILURES`].
pub const FAILURES_COUNT_FOR: Duration = Duration::from_secs(10 * 60);

/// How many recovery codes there are at first.
pub const RECOVERY_CODES: usize = 10;

/// How long a sign-in waits for its second factor.
pub const CHALLENGE_LIFETIME: Duration = Duration::from_secs(10 * 60);

/// How many sign-ins of a user wait for their second factor at most; the oldest goes for a new one.
pub const MAX_CHALLENGES: u32 = 5;

/// Letters of one half of a recovery code: two halves of 8 of 62 hold 95 bits.
const HALF: usize = 8;

/// The second factor of a user. Until its first code was right it is not asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct TwoFactor {
    /// Whose it is.
    pub user_id: UserId,
    /// What the codes are made from, encrypted.
    #[serde(skip)]
    pub sealed_secret: String,
    /// When its first code was right; from then on it is asked for.
    pub confirmed_at: Option<Timestamp>,
    /// The step of the last code that was right: none up to it is taken again.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "opt_count()"))]
    pub last_step: Option<i64>,
    /// What the recovery codes that are left are recognised by.
    #[serde(skip)]
    pub recovery_codes: Vec<String>,
    /// When codes were wrong lately.
    #[serde(skip)]
    pub failures: Vec<Timestamp>,
    /// When it was set up.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

record! {
    TwoFactor as "two factor" by user_id, asked TwoFactorQuery;
    audited, touched updated_at;
}

/// Questions about second factors: none so far, they are found by their user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TwoFactorQuery {
    /// All, oldest first.
    All,
}

impl TwoFactor {
    /// Tells whether sign-ins ask for it.
    #[must_use]
    pub const fn is_confirmed(&self) -> bool {
        self.confirmed_at.is_some()
    }

    /// How long no code is taken, right or wrong, because too many were wrong.
    #[must_use]
    pub fn locked_for(&self, now: Timestamp) -> Option<Duration> {
        let remembered = remembered(&self.failures, now);
        let last = remembered.last()?;
        let count = u32::try_from(remembered.len()).unwrap_or(u32::MAX);
        let delayed_until = last.plus(sign_in_delay(count));
        // As many must be forgotten as are too many.
        let over = remembered.len().checked_sub(MAX_FAILURES);
        let full_until = over.and_then(|over| remembered.get(over));
        let full_until = full_until.map(|oldest| oldest.plus(FAILURES_COUNT_FOR));
        let until = full_until.map_or(delayed_until, |full| full.max(delayed_until));
        (now < until).then(|| until.since(now))
    }

    /// As it is once another code was wrong.
    #[must_use]
    pub fn failed(&self, now: Timestamp) -> Self {
        let mut failures = remembered(&self.failures, now);
        failures.push(now);
        failures.drain(..failures.len().saturating_sub(MAX_REMEMBERED));
        Self {
            failures,
            updated_at: now,
            ..self.clone()
        }
    }

    /// As it is once the code of a step was right.
    #[must_use]
    pub fn code_used(&self, now: Timestamp, step: i64) -> Self {
        Self {
            confirmed_at: self.confirmed_at.or(Some(now)),
            last_step: Some(step),
            failures: Vec::new(),
            updated_at: now,
            ..self.clone()
        }
    }

    /// As it is once a recovery code was used; `None` when it is none that is left.
    #[must_use]
    pub fn recovery_code_used(&self, now: Timestamp, code: &str) -> Option<Self> {
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

/// All of them, until a day after the last.
fn remembered(failures: &[Timestamp], now: Timestamp) -> Vec<Timestamp> {
    let counts = |last: &Timestamp| now.since(*last) < FAILURES_FORGOTTEN_AFTER;
    match failures.last().filter(|last| counts(last)) {
        Some(_) => failures.to_vec(),
        None => Vec::new(),
    }
}

/// New recovery codes, to be shown once.
#[must_use]
pub fn new_recovery_codes(entropy: &dyn Entropy) -> Vec<String> {
    let half = || secret_token(entropy, HALF);
    let code = |_| format!("{}-{}", half(), half());
    (0..RECOVERY_CODES).map(code).collect()
}

/// What is stored of recovery codes.
#[must_use]
pub fn recovery_hashes(user: &UserId, codes: &[String]) -> Vec<String> {
    codes.iter().map(|code| recovery_hash(user, code)).collect()
}

/// However people copy a code: what is no letter or digit does not count.
fn recovery_hash(user: &UserId, code: &str) -> String {
    let letters: String = code.chars().filter(char::is_ascii_alphanumeric).collect();
    let hash = TokenHash::of(&format!("{user}:{letters}"));
    AsRef::<str>::as_ref(&hash).to_owned()
}

/// A sign-in that waits for its second factor. Its token is in a cookie, and never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct TwoFactorChallenge {
    /// What the token is recognised by.
    pub token_hash: TokenHash,
    /// Who signs in.
    pub user_id: UserId,
    /// Whether the browser shall keep the session.
    pub remembered: bool,
    /// When the first factor was right.
    pub created_at: Timestamp,
    /// From when on it is good for nothing.
    pub expires_at: Timestamp,
}

record! {
    TwoFactorChallenge as "two factor challenge" by token_hash, asked TwoFactorChallengeQuery;
}

/// Questions about sign-ins that wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TwoFactorChallengeQuery {
    /// Those of a user, oldest first.
    OfUser(UserId),
    /// Those that have expired at this instant, oldest first.
    ExpiredAt(Timestamp),
}

/// How long a device is trusted after the last sign-in with it.
pub const TRUSTED_FOR: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// How many devices a person trusts at most; the one that was trusted first goes for a new one.
pub const MAX_TRUSTED_DEVICES: u32 = 20;

/// A device that its owner trusts. Its token is in a cookie, is another one after each sign-in, and is never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct TrustedDevice {
    /// What the token is recognised by.
    pub token_hash: TokenHash,
    /// Who trusts it.
    pub user_id: UserId,
    /// The client's address when the device became trusted.
    pub ip_address: Option<String>,
    /// The client's `User-Agent` when the device became trusted.
    pub user_agent: Option<String>,
    /// When the device became trusted.
    pub created_at: Timestamp,
    /// From when on it is asked for the second factor again.
    pub expires_at: Timestamp,
}

record! {
    TrustedDevice as "trusted device" by token_hash, asked TrustedDeviceQuery;
}

/// Questions about devices that are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustedDeviceQuery {
    /// Those of a user, the first one first.
    OfUser(UserId),
    /// Those that have expired at this instant, oldest first.
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
    fn each_recovery_code_is_good_once_however_it_is_written() {
        let (mut two_factor, codes) = set_up();
        let now = two_factor.created_at;
        assert_eq!(codes.len(), RECOVERY_CODES);
        for code in &codes {
            let written = format!(" {} ", code.replace('-', " "));
            two_factor = two_factor.recovery_code_used(now, &written).unwrap();
            assert_eq!(two_factor.recovery_code_used(now, code), None);
        }
        assert!(two_factor.recovery_codes.is_empty());
        assert_eq!(two_factor.recovery_code_used(now, ""), None);
    }

    #[test]
    fn recovery_codes_of_two_people_are_kept_apart() {
        let (two_factor, codes) = set_up();
        let other = TwoFactor {
            user_id: UserId::parse("somebody-else").unwrap(),
            ..two_factor
        };
        assert_eq!(other.recovery_code_used(other.created_at, &codes[0]), None);
    }

    proptest! {
        #[test]
        fn at_most_five_codes_are_tried_in_ten_minutes_and_fewer_and_fewer(
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
                        two_factor = two_factor.failed(now);
                        tried.push(now);
                    }
                }
                let lately = tried.iter().filter(|at| now.since(**at) < FAILURES_COUNT_FOR);
                prop_assert!(lately.count() <= MAX_FAILURES);
                prop_assert!(two_factor.failures.len() <= MAX_REMEMBERED);
            }
            let day_later = now.plus(FAILURES_FORGOTTEN_AFTER);
            prop_assert_eq!(two_factor.locked_for(day_later), None);
        }
    }
}
