//! Device authorizations: a program shows a code, a person enters it elsewhere, the program polls until it is approved.

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

/// How long a code can be entered and exchanged.
const LIFETIME: Duration = Duration::from_secs(600);

/// How long a client waits between polls, in seconds.
const INTERVAL: i64 = 5;

/// How much longer it waits after each poll that came too early, in seconds.
const SLOW_DOWN: i64 = 5;

/// How much of an interval the way of two requests may take from it.
const JITTER: Duration = Duration::from_millis(500);

text_enum! {
    /// Where a device authorization stands.
    pub enum DeviceStatus {
        /// Nobody has decided yet.
        Pending = "pending",
        /// A person lets the device sign in.
        Approved = "approved",
        /// A person refuses it, or took the approval back.
        Denied = "denied",
        /// The device has its tokens. Never left.
        Redeemed = "redeemed",
    }
}

state_machine! {
    /// What happens to a device authorization. It is created `pending`.
    pub enum DeviceEvent moves DeviceStatus {
        /// A person lets the device sign in.
        Approve = "approve": [Pending] => Approved, "device_authorization.approved";
        /// A person refuses it.
        Deny = "deny": [Pending] => Denied, "device_authorization.denied";
        /// The person ends all their sessions before the device has its own.
        Revoke = "revoke": [Approved] => Denied, "device_authorization.revoked";
        /// The device takes its tokens.
        Redeem = "redeem": [Approved] => Redeemed, "device_authorization.redeemed";
    }
}

text_enum! {
    /// What a person decides about a device.
    pub enum DeviceDecision {
        /// It may sign in.
        Approve = "approve",
        /// It may not.
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

/// A device that wants to sign in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct DeviceAuthorization {
    /// Its id.
    pub id: DeviceAuthorizationId,
    /// What the device code is recognised by.
    #[serde(skip)]
    pub device_code_hash: TokenHash,
    /// The code a person enters.
    #[serde(skip)]
    pub user_code: UserCode,
    /// The program that asks.
    pub client_id: OAuthClient,
    /// Where it stands.
    pub status: DeviceStatus,
    /// Who decided.
    pub user_id: Option<UserId>,
    /// The organization the person acted for when they decided: the device will act for it.
    pub organization_id: Option<OrganizationId>,
    /// How long the device must wait between polls, in seconds.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub interval: i64,
    /// When the device asked last.
    #[serde(skip)]
    pub polled_at: Option<Timestamp>,
    /// The device's address.
    pub ip_address: Option<String>,
    /// The device's `User-Agent`.
    pub user_agent: Option<String>,
    /// When the device asked for the codes.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// From when on the codes are over.
    pub expires_at: Timestamp,
}

record! {
    DeviceAuthorization as "device authorization" by id, asked DeviceAuthorizationQuery;
    audited, touched updated_at;
}

/// Questions about device authorizations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceAuthorizationQuery {
    /// The one with this device code.
    WithDeviceCode(TokenHash),
    /// The one with this user code.
    WithUserCode(UserCode),
    /// Those that this user has approved and that have no tokens yet.
    ApprovedBy(UserId),
    /// Those that have expired at this instant.
    ExpiredAt(Timestamp),
}

/// What a device that asks is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DevicePoll {
    /// Nobody has decided yet.
    Pending,
    /// It asks too often, and shall wait longer from now on.
    TooFast,
    /// The code is over.
    Expired,
    /// A person refused.
    Denied,
    /// It gets its tokens.
    Approved,
    /// It has had its tokens.
    Redeemed,
}

impl DeviceAuthorization {
    /// When the codes of an authorization that begins now are over.
    #[must_use]
    pub fn end(now: Timestamp) -> Timestamp {
        now.plus(LIFETIME)
    }

    /// How long a device waits between polls at first, in seconds.
    #[must_use]
    pub const fn first_interval() -> i64 {
        INTERVAL
    }

    /// Whether the codes are over.
    #[must_use]
    pub fn is_expired(&self, now: Timestamp) -> bool {
        now >= self.expires_at
    }

    /// What the device is told when it asks now.
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
        // A clock that was set back says nothing.
        let last = self.polled_at.filter(|last| *last <= now);
        last.is_some_and(|last| now.since(last) + JITTER < interval)
    }

    /// The authorization after a poll that changed nothing else.
    #[must_use]
    pub fn polled(&self, now: Timestamp) -> Self {
        let more = if self.poll(now) == DevicePoll::TooFast {
            SLOW_DOWN
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

/// Consonants alone, so that no code is a word (RFC 8628, section 6.1); 8 of them are 34 bits.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";

/// How many letters stand before and behind the dash.
const HALF: usize = 4;

/// A user code, `XXXX-XXXX`.
#[derive(Clone, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(transparent)]
pub struct UserCode(String);

// The code stays out of logs.
impl std::fmt::Debug for UserCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UserCode(..)")
    }
}

impl UserCode {
    /// A new code, each letter uniformly random.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let mut letters = Vec::with_capacity(2 * HALF);
        let mut buffer = [0_u8; 16];
        while letters.len() < 2 * HALF {
            entropy.fill(&mut buffer);
            // 240 = 12 * 20: larger bytes would favour the first letters.
            let fair = buffer.iter().filter(|b| **b < 240);
            letters.extend(fair.map(|b| char::from(LETTERS[usize::from(b % 20)])));
        }
        letters.truncate(2 * HALF);
        Self::of(&letters)
    }

    /// Reads a code as people write it: case, spaces and dashes do not matter.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let written = text.chars().filter(|c| !c.is_whitespace() && *c != '-');
        let letters: Vec<char> = written.map(|c| c.to_ascii_uppercase()).take(9).collect();
        let known = |c: &char| u8::try_from(*c).is_ok_and(|byte| LETTERS.contains(&byte));
        (letters.len() == 2 * HALF && letters.iter().all(known)).then(|| Self::of(&letters))
    }

    fn of(letters: &[char]) -> Self {
        let (first, second) = letters.split_at(HALF.min(letters.len()));
        let halves = [first, second].map(|half| half.iter().collect::<String>());
        Self(halves.join("-"))
    }
}

impl TextValue for UserCode {
    fn as_text(&self) -> &str {
        &self.0
    }

    fn from_text(text: &str) -> Option<Self> {
        Self::read(text).filter(|code| code.0 == text)
    }
}

arbitrary!(UserCode as "[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::kernel::assert_only_table_moves;
    use crate::testing::SeededEntropy;

    use super::*;

    fn begun(now: Timestamp) -> DeviceAuthorization {
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
            expires_at: DeviceAuthorization::end(now),
        }
    }

    proptest! {
        #[test]
        fn an_authorization_makes_the_moves_of_the_table_and_no_other(
            events in prop::collection::vec(any::<DeviceEvent>(), 0..8)
        ) {
            assert_only_table_moves(DeviceStatus::Pending, &events);
        }

        #[test]
        fn the_interval_grows_by_five_with_each_early_poll_and_never_shrinks(
            pauses in prop::collection::vec(0_u64..40_000, 1..40)
        ) {
            let mut now = Timestamp::from_seconds(1_800_000_000);
            let mut device = begun(now);
            let end = device.expires_at;
            let mut early = 0;
            for (n, millis) in pauses.into_iter().enumerate() {
                let pause = Duration::from_millis(millis);
                now = now.plus(pause);
                let wait = Duration::from_secs(5 + 5 * early) - JITTER;
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
                device = device.polled(now);
                prop_assert_eq!(device.interval, i64::try_from(5 + 5 * early).unwrap());
            }
        }
    }

    #[test]
    fn an_approval_is_over_with_its_code_and_tokens_are_had_once() {
        let now = Timestamp::from_seconds(1_800_000_000);
        let in_status = |status| DeviceAuthorization {
            status,
            polled_at: Some(now),
            ..begun(now)
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
            assert_eq!(in_status(status).poll(now.plus(LIFETIME)), late);
        }
        let back = now.minus(Duration::from_secs(3_600));
        assert_eq!(
            in_status(DeviceStatus::Pending).poll(back),
            DevicePoll::Pending
        );
    }

    proptest! {
        #[test]
        fn a_code_is_read_however_it_is_written(seed: u64, spaces in "[ \t-]{0,3}", lower: bool) {
            let code = UserCode::generate(&SeededEntropy::new(seed));
            prop_assert_eq!(UserCode::from_text(code.as_text()), Some(code.clone()));
            let spread: String = code.as_text().chars().map(|c| format!("{c}{spaces}")).collect();
            let written = if lower { spread.to_lowercase() } else { spread };
            prop_assert_eq!(UserCode::read(&written), Some(code));
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,20}") {
            let _ = UserCode::read(&text);
        }
    }

    #[test]
    fn vowels_digits_and_other_lengths_are_no_code() {
        for text in [
            "",
            "BCDF-GHJ",
            "BCDF-GHJKL",
            "ACDF-GHJK",
            "BCDF-GHJ0",
            "BCDFĞGHJK",
        ] {
            assert_eq!(UserCode::read(text), None, "{text}");
        }
    }
}
