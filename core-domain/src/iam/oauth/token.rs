//! Access tokens, and how long tokens last.

use std::time::Duration;

use crate::iam::TokenHash;
use crate::kernel::{SessionId, Timestamp, record};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// How long an access token lasts, unless its session ends before.
pub const ACCESS_TOKEN_LIFETIME: Duration = Duration::from_secs(900);

/// How long a refresh token lasts, and with it the session of its family.
pub const REFRESH_TOKEN_LIFETIME: Duration = DAY.saturating_mul(30);

/// How long after the login a family of refresh tokens ends, however much it is used.
pub const FAMILY_LIFETIME: Duration = DAY.saturating_mul(90);

/// A token with which a program acts as the person of a session. It is worth nothing without its session, so ending the
/// session ends it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct AccessToken {
    /// What the token is recognised by.
    pub token_hash: TokenHash,
    /// The session it acts for.
    pub session_id: SessionId,
    /// When it was issued.
    pub created_at: Timestamp,
    /// From when on it is over.
    pub expires_at: Timestamp,
}

record! {
    AccessToken as "access token" by token_hash, asked AccessTokenQuery;
}

/// Questions about access tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessTokenQuery {
    /// Those of a session.
    OfSession(SessionId),
    /// Those that have expired at this instant.
    ExpiredAt(Timestamp),
}
