//! Device authorizations (RFC 8628). A program shows a user code, a person enters it in a browser, and the program
//! polls for the decision.

use std::time::Duration;

use serde::Serialize;

use super::OAuthClient;
use crate::iam::TokenHash;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::count;
use crate::kernel::{
    DeviceAuthorizationId, Entropy, OrganizationId, TextValue, Timestamp, UserId, arbitrary,
    record, state_machine, text_enum,
};

/// Time for which the codes are valid.
const DEVICE_CODE_LIFETIME: Duration = Duration::from_secs(600);

/// Initial minimum time between two polls, in seconds.
const DEFAULT_POLL_INTERVAL_SECONDS: i64 = 5;

/// Increase of the interval after each poll that comes too early, in seconds.
const SLOW_DOWN_SECONDS: i64 = 5;

/// Tolerance for polls that arrive slightly early because of the network.
const POLL_TOLERANCE: Duration = Duration::from_millis(500);

text_enum! {
    /// The status of a device authorization.
    pub enum DeviceStatus {
        /// No person has decided yet.
        Pending = "pending",
        /// A person has allowed the device to sign in.
        Approved = "approved",
        /// A person has refused the device, or has revoked the approval.
        Denied = "denied",
        /// The device has received its tokens. Final.
        Redeemed = "redeemed",
    }
}

state_machine! {
    /// The lifecycle events of a device authorization. A new authorization is `pending`.
    pub enum DeviceEvent moves DeviceStatus {
        /// A person allows the device to sign in.
        Approve = "approve": [Pending] => Approved, "device_authorization.approved";
        /// A person refuses the device.
        Deny = "deny": [Pending] => Denied, "device_authorization.denied";
        /// The person ends all their sessions before the device has exchanged its code.
        Revoke = "revoke": [Approved] => Denied, "device_authorization.revoked";
        /// The device exchanges its code for tokens.
        Redeem = "redeem": [Approved] => Redeemed, "device_authorization.redeemed";
    }
}

text_enum! {
    /// The decision of a person about a device.
    pub enum DeviceDecision {
        /// The device is allowed to sign in.
        Approve = "approve",
        /// The device is refused.
        Deny = "deny",
    }
}

impl From<DeviceDecision> for DeviceEvent {
    fn from(decision: DeviceDecision) -> Self {
        match decision {
            DeviceDecision::Approve => Self::Approve,
            DeviceDecision::Deny => Self::Deny,
        }
    }
}

/// A request of a device to sign in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct DeviceAuthorization {
    /// The id of the authorization.
    pub id: DeviceAuthorizationId,
    /// The hash of the device code.
    #[serde(skip)]
    pub device_code_hash: TokenHash,
    /// The code that the person enters.
    #[serde(skip)]
    pub user_code: UserCode,
    /// The program that wants to sign in.
    pub client_id: OAuthClient,
    /// The status of the authorization.
    pub status: DeviceStatus,
    /// The user who decided; `null` before the decision.
    pub user_id: Option<UserId>,
    /// The organization that the device will act for: the active one of the user at the time of the decision.
    pub organization_id: Option<OrganizationId>,
    /// Minimum time between two polls, in seconds.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub interval: i64,
    /// The time of the last poll; `None` before the first.
    #[serde(skip)]
    pub polled_at: Option<Timestamp>,
    /// The IP address of the device; `null` if unknown.
    pub ip_address: Option<String>,
    /// The `User-Agent` header of the device; `null` if unknown.
    pub user_agent: Option<String>,
    /// The time at which the device requested the codes.
    pub created_at: Timestamp,
    /// The time of the last change.
    pub updated_at: Timestamp,
    /// The time at which the codes expire.
    pub expires_at: Timestamp,
}

record! {
    DeviceAuthorization as "device authorization" by id, asked DeviceAuthorizationQuery;
    audited, touched updated_at;
}

/// Queries on device authorizations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceAuthorizationQuery {
    /// The authorization with this device code.
    WithDeviceCode(TokenHash),
    /// The authorization with this user code.
    WithUserCode(UserCode),
    /// The authorizations that this user has approved and whose code has not been exchanged.
    ApprovedBy(UserId),
    /// The authorizations whose codes have expired at this time.
    ExpiredAt(Timestamp),
}

/// The outcome of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DevicePoll {
    /// No person has decided yet.
    Pending,
    /// The device polls too often. Its interval grows by 5 seconds.
    TooFast,
    /// The codes have expired.
    Expired,
    /// A person has refused the device.
    Denied,
    /// The device receives its tokens.
    Approved,
    /// The device has already received its tokens.
    Redeemed,
}

impl DeviceAuthorization {
    /// Returns the time at which the codes of an authorization that starts now expire.
    #[must_use]
    pub fn expiry(now: Timestamp) -> Timestamp {
        now.plus(DEVICE_CODE_LIFETIME)
    }

    /// Returns the initial minimum time between two polls, in seconds.
    #[must_use]
    pub const fn first_interval() -> i64 {
        DEFAULT_POLL_INTERVAL_SECONDS
    }

    /// Returns whether the codes have expired at the given time.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }

    /// Returns the outcome of a poll at the given time.
    #[must_use]
    pub fn poll(&self, now: Timestamp) -> DevicePoll {
        match self.status {
            DeviceStatus::Redeemed => DevicePoll::Redeemed,
            _ if self.is_expired(now) => DevicePoll::Expired,
            DeviceStatus::Denied => DevicePoll::Denied,
            DeviceStatus::Approved => DevicePoll::Approved,
            DeviceStatus::Pending if self.is_too_early(now) => DevicePoll::TooFast,
            DeviceStatus::Pending => DevicePoll::Pending,
        }
    }

    fn is_too_early(&self, now: Timestamp) -> bool {
        let interval = Duration::from_secs(u64::try_from(self.interval).unwrap_or(0));
        // If the clock was set back, the time of the last poll is unusable.
        let last = self.polled_at.filter(|last| *last <= now);
        last.is_some_and(|last| now.since(last) + POLL_TOLERANCE < interval)
    }

    /// Returns the authorization after a poll that did not change its status.
    #[must_use]
    pub fn after_poll(&self, now: Timestamp) -> Self {
        let more = if self.poll(now) == DevicePoll::TooFast {
            SLOW_DOWN_SECONDS
        } else {
            0
        };
        Self {
            polled_at: Some(now),
            interval: self.interval.saturating_add(more),
            ..self.clone()
        }
    }
}

/// Only consonants, so that no code is a word (RFC 8628, section 6.1). Eight letters have 34 bits.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";

/// Number of letters on each side of the dash.
const HALF_LENGTH: usize = 4;

/// A user code of the form `XXXX-XXXX`.
#[derive(Clone, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct UserCode(String);

// The `Debug` output hides the code, so that it does not appear in logs.
impl std::fmt::Debug for UserCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UserCode(..)")
    }
}

impl UserCode {
    /// Generates a new code with uniformly random letters.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let mut letters = Vec::with_capacity(2 * HALF_LENGTH);
        let mut buffer = [0_u8; 16];
        while letters.len() < 2 * HALF_LENGTH {
            entropy.fill(&mut buffer);
            // Only bytes below 240 (12 times 20) are used. Larger bytes would make the first letters more likely.
            let fair = buffer.iter().filter(|b| **b < 240);
            letters.extend(fair.map(|b| char::from(LETTERS[usize::from(b % 20)])));
        }
        letters.truncate(2 * HALF_LENGTH);
        Self::of(&letters)
    }

    /// Parses a code as a person types it. Ignores case, white space and dashes.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let written = text.chars().filter(|c| !c.is_whitespace() && *c != '-');
        let letters: Vec<char> = written.map(|c| c.to_ascii_uppercase()).take(9).collect();
        let known = |c: &char| u8::try_from(*c).is_ok_and(|byte| LETTERS.contains(&byte));
        (letters.len() == 2 * HALF_LENGTH && letters.iter().all(known)).then(|| Self::of(&letters))
    }

    fn of(letters: &[char]) -> Self {
        let (first, second) = letters.split_at(HALF_LENGTH.min(letters.len()));
        let halves = [first, second].map(|half| half.iter().collect::<String>());
        Self(halves.join("-"))
    }
}

impl TextValue for UserCode {
    fn as_text(&self) -> &str {
        &self.0
    }

    fn from_text(text: &str) -> Option<Self> {
        Self::parse(text).filter(|code| code.0 == text)
    }
}

arbitrary!(UserCode as "[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::kernel::assert_only_table_moves;
    use crate::testing::SeededEntropy;

    use super::*;

    fn new_authorization(now: Timestamp) -> DeviceAuthorization {
        let entropy = SeededEntropy::new(1);
        DeviceAuthorization {
            id: DeviceAuthorizationId::generate(now, &entropy),
            device_code_hash: TokenHash::of("code"),
            user_code: UserCode::generate(&entropy),
            client_id: OAuthClient::CoreCli,
            status: DeviceStatus::Pending,
            user_id: None,
            organization_id: None,
            interval: DeviceAuthorization::first_interval(),
            polled_at: None,
            ip_address: None,
            user_agent: None,
            created_at: now,
            updated_at: now,
            expires_at: DeviceAuthorization::expiry(now),
        }
    }

    proptest! {
        #[test]
        fn events_make_only_the_moves_of_the_table(
            events in prop::collection::vec(any::<DeviceEvent>(), 0..8)
        ) {
            assert_only_table_moves(DeviceStatus::Pending, &events);
        }

        #[test]
        fn interval_grows_by_five_seconds_with_each_early_poll(
            pauses in prop::collection::vec(0_u64..40_000, 1..40)
        ) {
            let mut now = Timestamp::from_seconds(1_800_000_000);
            let mut device = new_authorization(now);
            let end = device.expires_at;
            let mut early = 0;
            for (n, millis) in pauses.into_iter().enumerate() {
                let pause = Duration::from_millis(millis);
                now = now.plus(pause);
                let wait = Duration::from_secs(5 + 5 * early) - POLL_TOLERANCE;
                let told = device.poll(now);
                let expected = if now >= end {
                    DevicePoll::Expired
                } else if n > 0 && pause < wait {
                    DevicePoll::TooFast
                } else {
                    DevicePoll::Pending
                };
                prop_assert_eq!(told, expected);
                early += u64::from(told == DevicePoll::TooFast);
                device = device.after_poll(now);
                prop_assert_eq!(device.interval, i64::try_from(5 + 5 * early).unwrap());
            }
        }
    }

    #[test]
    fn approval_expires_with_its_code_and_is_redeemed_once() {
        let now = Timestamp::from_seconds(1_800_000_000);
        let in_status = |status| DeviceAuthorization {
            status,
            polled_at: Some(now),
            ..new_authorization(now)
        };
        for (status, early, late) in [
            (
                DeviceStatus::Pending,
                DevicePoll::TooFast,
                DevicePoll::Expired,
            ),
            (
                DeviceStatus::Approved,
                DevicePoll::Approved,
                DevicePoll::Expired,
            ),
            (
                DeviceStatus::Denied,
                DevicePoll::Denied,
                DevicePoll::Expired,
            ),
            (
                DeviceStatus::Redeemed,
                DevicePoll::Redeemed,
                DevicePoll::Redeemed,
            ),
        ] {
            assert_eq!(in_status(status).poll(now), early);
            assert_eq!(in_status(status).poll(now.plus(DEVICE_CODE_LIFETIME)), late);
        }
        let back = now.minus(Duration::from_secs(3_600));
        assert_eq!(
            in_status(DeviceStatus::Pending).poll(back),
            DevicePoll::Pending
        );
    }

    proptest! {
        #[test]
        fn user_code_is_parsed_in_any_case_and_spacing(seed: u64, spaces in "[ \t-]{0,3}", lower: bool) {
            let code = UserCode::generate(&SeededEntropy::new(seed));
            prop_assert_eq!(UserCode::from_text(code.as_text()), Some(code.clone()));
            let spread: String = code.as_text().chars().map(|c| format!("{c}{spaces}")).collect();
            let written = if lower { spread.to_lowercase() } else { spread };
            prop_assert_eq!(UserCode::parse(&written), Some(code));
        }

        #[test]
        fn parsing_a_user_code_never_panics(text in ".{0,20}") {
            let _ = UserCode::parse(&text);
        }
    }

    #[test]
    fn user_code_rejects_vowels_digits_and_other_lengths() {
        for text in [
            "",
            "BCDF-GHJ",
            "BCDF-GHJKL",
            "ACDF-GHJK",
            "BCDF-GHJ0",
            "BCDFĞGHJK",
        ] {
            assert_eq!(UserCode::parse(text), None, "{text}");
        }
    }
}
