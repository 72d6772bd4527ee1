//! Passkeys (WebAuthn credentials). An authenticator uses a passkey only after it has verified its user, so a passkey
//! counts as two factors.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use super::TokenHash;
#[cfg(any(test, feature = "proptest"))]
use crate::kernel::strategy::{count, json_text};
use crate::kernel::{JsonText, Line, PasskeyId, Timestamp, UserId, record, text_enum};

/// Lifetime of a passkey challenge: 5 minutes.
pub const PASSKEY_CHALLENGE_LIFETIME: Duration = Duration::from_secs(5 * 60);

/// Maximum number of pending passkey registrations per user. A further one removes the oldest.
pub const MAX_PASSKEY_REGISTRATIONS: u32 = 5;

text_enum! {
    /// The kind of device that can hold a passkey.
    pub enum PasskeyDeviceType {
        /// The passkey stays on one device.
        SingleDevice = "singleDevice",
        /// The passkey can be copied between the devices of its owner.
        MultiDevice = "multiDevice",
    }
}

/// A passkey of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Passkey {
    /// The unique id of the passkey.
    pub id: PasskeyId,
    /// The user who owns the passkey.
    pub user_id: UserId,
    /// The display name that its owner gave it; `null` if it has none.
    pub name: Option<Line<1, 255>>,
    /// The credential id that the authenticator assigned, in base64url.
    #[serde(rename = "credentialID")]
    pub credential_id: String,
    /// The public key and the other data for its verification, as JSON.
    #[serde(skip)]
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json_text()"))]
    pub credential: JsonText,
    /// The signature counter of the authenticator; 0 if the authenticator does not count.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "count()"))]
    pub counter: i64,
    /// Whether the passkey is bound to one device.
    pub device_type: PasskeyDeviceType,
    /// Whether a backup copy of the passkey exists.
    pub backed_up: bool,
    /// The transports of the authenticator, comma-separated, for example `internal,hybrid`.
    pub transports: String,
    /// The time at which the passkey was registered.
    pub created_at: Timestamp,
    /// The time of the last change or use.
    pub updated_at: Timestamp,
    /// The time of the last use; `null` if it was never used.
    pub last_used_at: Option<Timestamp>,
}

record! {
    Passkey as "passkey" by id, asked PasskeyQuery;
    audited, touched updated_at;
}

/// Queries on passkeys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasskeyQuery {
    /// The passkey with this credential id.
    WithCredential(String),
    /// The passkeys of a user, oldest first.
    OfUser(UserId),
}

/// A challenge that waits for the response of an authenticator. Its token is in a cookie and is never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct PasskeyChallenge {
    /// The hash of the challenge token.
    pub token_hash: TokenHash,
    /// The user who registers a passkey; `None` for a sign-in, which any passkey can answer.
    pub user_id: Option<UserId>,
    /// The state that the response is verified against, as JSON.
    #[cfg_attr(any(test, feature = "proptest"), proptest(strategy = "json_text()"))]
    pub state: JsonText,
    /// The time at which the challenge was created.
    pub created_at: Timestamp,
    /// The time at which the challenge expires.
    pub expires_at: Timestamp,
}

record! {
    PasskeyChallenge as "passkey challenge" by token_hash, asked PasskeyChallengeQuery;
}

/// Queries on passkey challenges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasskeyChallengeQuery {
    /// The registrations of a user, oldest first.
    OfUser(UserId),
    /// The challenges that have expired at this time, oldest first.
    ExpiredAt(Timestamp),
}
