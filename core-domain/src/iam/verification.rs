//! Tokens that were sent by mail: whoever has one reads mail at the address.

use std::time::Duration;

use super::TokenHash;
use crate::kernel::{Email, Line, Timestamp, VerificationId, record, text_enum};

text_enum! {
    /// What a token is for.
    pub enum VerificationPurpose {
        /// To sign in.
        MagicLink = "magic-link",
        /// To set a new password.
        PasswordReset = "password-reset",
        /// To prove that one reads mail at the address.
        EmailVerification = "email-verification",
        /// For nothing: the mail to somebody who has an account, whose address is signed up with once more, leads to the
        /// sign-in, and is bounded and costs as much work as the one to somebody new.
        AlreadyRegistered = "already-registered",
    }
}

impl VerificationPurpose {
    /// How long a token is good for.
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

/// A token that was sent by mail and has not been used. The token itself is never stored.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(any(test, feature = "proptest"), derive(proptest_derive::Arbitrary))]
pub struct Verification {
    /// Its id.
    pub id: VerificationId,
    /// What it is for.
    pub purpose: VerificationPurpose,
    /// What the token is recognised by.
    pub token_hash: TokenHash,
    /// The address it was sent to.
    pub email: Email,
    /// What a person who is new with it calls themselves.
    pub name: Option<Line<0, 255>>,
    /// When it was made.
    pub created_at: Timestamp,
    /// From when on it is good for nothing.
    pub expires_at: Timestamp,
}

record! {
    Verification as "verification" by id, asked VerificationQuery;
}

/// Questions about tokens that were sent.
#[derive(Clone, Debug, PartialEq)]
pub enum VerificationQuery {
    /// The one with this token.
    WithToken(TokenHash),
    /// Those that have expired at this instant, oldest first.
    ExpiredAt(Timestamp),
}
