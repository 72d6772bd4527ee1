//! The outcome of asking for tokens.

use super::TokenPair;
use crate::kernel::{Code, Error};

/// What whoever asked for tokens gets. Unlike an error, a refusal is committed.
pub type GrantOutcome = Result<TokenPair, GrantRefusal>;

/// Why there are no tokens, in the words of RFC 6749 and RFC 8628.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrantRefusal {
    /// Nobody has decided yet about the device.
    AuthorizationPending,
    /// The device asks too often.
    SlowDown,
    /// The codes of the device are over.
    ExpiredToken,
    /// A person refused the device.
    AccessDenied,
    /// The code or token is unknown, used, over, or another client's.
    InvalidGrant,
}

impl From<GrantRefusal> for Error {
    fn from(refusal: GrantRefusal) -> Self {
        let (code, message) = match refusal {
            GrantRefusal::AuthorizationPending => (
                Code::AuthorizationPending,
                "Nobody has approved the device yet.",
            ),
            GrantRefusal::SlowDown => (
                Code::SlowDown,
                "The device asks too often; it must wait five seconds longer from now on.",
            ),
            GrantRefusal::ExpiredToken => (Code::ExpiredToken, "The codes of the device are over."),
            GrantRefusal::AccessDenied => (Code::AccessDenied, "The device was refused."),
            GrantRefusal::InvalidGrant => (
                Code::InvalidGrant,
                "The code or token is unknown, was used, or is over.",
            ),
        };
        Self::refused(code, message)
    }
}
