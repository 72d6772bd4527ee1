//! Tokens that are sent by email. Presenting one proves that the user receives mail at the address.

use std::time::Duration;

use super::TokenHash;
use crate::kernel::{Email, Line, Timestamp, VerificationId, record, text_enum};

text_enum! {
    /// The purpose of a mailed token.
    pub enum VerificationPurpose {
        /// Sign-in without a password.
        MagicLink = "magic-link",
        /// Setting a new password.
        PasswordReset = "password-reset",
        /// Confirming that the user receives mail at the address.
        EmailVerification = "email-verification",
        /// No effect. If a registered address signs up again, its owner gets a mail that leads to the sign-in page. The
        /// token makes this mail cost as much work as that to a new address, and limits its number.
        AlreadyRegistered = "already-registered",
    }
}

impl VerificationPurpose {
    /// Returns the lifetime of a token: 5 minutes for a magic link, 1 hour for the other purposes.
    #[must_use]
    pub const fn lifetime(self) -> Duration {
        match self {
            Self::MagicLink => Duration::from_secs(5 * 60),
            Self::PasswordReset | Self::EmailVerification | Self::AlreadyRegistered => {
                Duration::from_secs(60 * 60)
            }
        }
    }
}

/// A mailed token that has not been used. The token itself is never stored.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Verification {
    /// The unique id of the record.
    pub id: VerificationId,
    /// The purpose of the token.
    pub purpose: VerificationPurpose,
    /// The hash of the mailed token.
    pub token_hash: TokenHash,
    /// The email address that the token was sent to.
    pub email: Email,
    /// The display name for the user that the token may create; `None` if none was given.
    pub name: Option<Line<0, 255>>,
    /// The time at which the token was created.
    pub created_at: Timestamp,
    /// The time at which the token expires.
    pub expires_at: Timestamp,
}

record! {
    Verification as "verification" by id, asked VerificationQuery;
}

/// Queries on mailed tokens.
#[derive(Clone, Debug, PartialEq)]
pub enum VerificationQuery {
    /// The record with this token.
    WithToken(TokenHash),
    /// The tokens that have expired at this time, oldest first.
    ExpiredAt(Timestamp),
}
