//! Devices that a person trusts: the password signs in there without the second factor.

use std::time::Duration;

use super::TokenHash;
use crate::kernel::{Timestamp, UserId, record};

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
