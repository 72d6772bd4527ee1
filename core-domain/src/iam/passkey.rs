//! Passkeys: keys that authenticators of people hold, one for each installation. An authenticator shows one once it has
//! verified its user, so a passkey is two factors at once.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::TokenHash;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::{count, json_text};
use crate::kernel::{JsonText, Line, PasskeyId, Timestamp, UserId, record, text_enum};

/// How long a challenge is good for.
pub const PASSKEY_CHALLENGE_LIFETIME: Duration = Duration::from_secs(5 * 60);

/// How many registrations of a user may be begun at a time; the oldest goes for a new one.
pub const MAX_PASSKEY_REGISTRATIONS: u32 = 5;

text_enum! {
    /// Where a passkey may be.
    pub enum PasskeyDevice {
        /// On one device for good.
        SingleDevice = "singleDevice",
        /// Copied between devices of the person by their provider.
        MultiDevice = "multiDevice",
    }
}

/// A passkey of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Passkey {
    /// Its id.
    pub id: PasskeyId,
    /// Whose it is.
    pub user_id: UserId,
    /// How the person calls it.
    pub name: Option<Line<1, 255>>,
    /// What the authenticator calls it: base64url.
    #[serde(rename = "credentialID")]
    pub credential_id: String,
    /// Its public key and what else verifies it.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json_text()"))]
    pub credential: JsonText,
    /// How often it was used, as its authenticator counts; 0 when it does not.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub counter: i64,
    /// Where it may be.
    pub device_type: PasskeyDevice,
    /// Whether there is a copy elsewhere.
    pub backed_up: bool,
    /// How its authenticator is reached, with commas between (`internal,hybrid`).
    pub transports: String,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When it was last changed or used.
    pub updated_at: Timestamp,
    /// When it was last used.
    pub last_used_at: Option<Timestamp>,
}

record! {
    Passkey as "passkey" by id, asked PasskeyQuery;
    audited, touched updated_at;
}

/// Questions about passkeys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasskeyQuery {
    /// The one that an authenticator calls so.
    WithCredential(String),
    /// Those of a user, oldest first.
    OfUser(UserId),
}

/// A challenge that waits for the answer of an authenticator. Its token is in a cookie, and never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct PasskeyChallenge {
    /// What the token is recognised by.
    pub token_hash: TokenHash,
    /// Who registers a passkey; none when anybody may show theirs.
    pub user_id: Option<UserId>,
    /// What the answer is checked against.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json_text()"))]
    pub state: JsonText,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is good for nothing.
    pub expires_at: Timestamp,
}

record! {
    PasskeyChallenge as "passkey challenge" by token_hash, asked PasskeyChallengeQuery;
}

/// Questions about challenges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasskeyChallengeQuery {
    /// Those that a user registers a passkey with, oldest first.
    OfUser(UserId),
    /// Those that have expired at this instant, oldest first.
    ExpiredAt(Timestamp),
}
