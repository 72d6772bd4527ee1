//! Options of an installation for sign-up and sign-in.

use serde::{Deserialize, Serialize};

/// Requirements for sign-up and sign-in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IamOptions {
    /// Whether an email address must be verified before its password can sign in. Default: false.
    ///
    /// If true, a sign-up starts no session and does not reveal whether the address already has a user; its owner is
    /// informed by mail. A sign-in with the chosen password still reveals whether the sign-up created the user, because
    /// better-auth reports an unverified address and a wrong password differently.
    pub require_email_verification: bool,
    /// Whether a verification link with the password also signs the user in. Default: false.
    pub auto_sign_in_after_verification: bool,
}
