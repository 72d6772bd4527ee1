//! What an installation may want of sign-ups and sign-ins.

use serde::{Deserialize, Serialize};

/// What people must show before they are signed in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IamOptions {
    /// Whether an address must be confirmed before its password signs in. Then a sign-up signs nobody in and does not tell
    /// whether the address has a user: that is said by mail. (Who then signs in with the password they chose learns whether it
    /// became that of a new user, as better-auth's answers have it.) No unless set.
    pub require_email_verification: bool,
    /// Whether the link that confirms an address signs in as well. No unless set.
    pub auto_sign_in_after_verification: bool,
}
