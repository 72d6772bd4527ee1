//! Registering and verifying passkeys: the cryptography of WebAuthn, for one relying party.

use serde_json::Value;

use super::Cause;
use crate::kernel::{JsonText, UserId};

/// Why a ceremony could not be begun or completed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PasskeyError {
    /// The answer of the authenticator is not one to this challenge: malformed, of another origin, without verification of
    /// the user, or with a wrong signature.
    #[error("the answer of the authenticator is refused")]
    Refused(#[source] Cause),
    /// The signature is right and its counter is not above the last one: there may be a copy of the passkey.
    #[error("the counter of the passkey went back")]
    CounterWentBack,
    /// Our own fault: what is stored cannot be read, or options cannot be made.
    #[error("passkeys failed")]
    Failed(#[source] Cause),
}

/// Whom a passkey is registered for, as authenticators show it.
#[derive(Clone, Copy, Debug)]
pub struct PasskeyUser<'a> {
    /// Who.
    pub id: &'a UserId,
    /// What authenticators show, and what the person tells accounts apart by.
    pub name: &'a str,
    /// How the person is called.
    pub display_name: &'a str,
}

/// What a ceremony begins with.
#[derive(Clone, Debug)]
pub struct PasskeyCeremony {
    /// What the browser is given, with binary values in base64url: the challenge is in it.
    pub options: Value,
    /// What completes the ceremony. It stays on the server, and is used once.
    pub state: JsonText,
}

/// A passkey as it was registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPasskey {
    /// What the authenticator calls it: base64url.
    pub credential_id: String,
    /// Its public key and what else verifies it.
    pub credential: JsonText,
    /// How often it was used, as the authenticator counts; 0 when it does not.
    pub counter: u32,
    /// Whether the authenticator may copy it to other devices of the person.
    pub backup_eligible: bool,
    /// Whether there is such a copy.
    pub backed_up: bool,
    /// How the authenticator is reached (`internal`, `usb`).
    pub transports: Vec<String>,
}

/// A passkey that was shown.
#[derive(Clone, Copy, Debug)]
pub struct ShownPasskey<'a> {
    /// Whose it is.
    pub user_id: &'a UserId,
    /// Its public key, as it was kept.
    pub credential: &'a JsonText,
}

/// What is to be kept of a passkey that was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedPasskey {
    /// As [`NewPasskey::credential`], from now on.
    pub credential: JsonText,
    /// As [`NewPasskey::counter`].
    pub counter: u32,
    /// As [`NewPasskey::backed_up`].
    pub backed_up: bool,
}

/// Registers and verifies passkeys. The user is always verified by the authenticator (by finger, face or PIN): without, an
/// answer is refused. Quick and without I/O, so it may be called inside a unit of work.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
pub trait Passkeys: Send + Sync + std::fmt::Debug {
    /// Begins to register a passkey; authenticators that have one of `existing` (ids of credentials) are not asked.
    ///
    /// # Errors
    /// [`PasskeyError::Failed`].
    fn begin_registration<'a>(
        &self,
        user: &PasskeyUser<'a>,
        existing: &[String],
    ) -> Result<PasskeyCeremony, PasskeyError>;

    /// Checks the answer of an authenticator that was to make a passkey.
    ///
    /// # Errors
    /// [`PasskeyError::Refused`]; [`PasskeyError::Failed`] when the state cannot be read.
    fn complete_registration(
        &self,
        state: &JsonText,
        response: &Value,
    ) -> Result<NewPasskey, PasskeyError>;

    /// Begins to ask for a passkey, whosoever it is: no user is named, and no credential.
    ///
    /// # Errors
    /// [`PasskeyError::Failed`].
    fn begin_authentication(&self) -> Result<PasskeyCeremony, PasskeyError>;

    /// What the authenticator calls the passkey of an answer, base64url; nothing of it is proved by that.
    ///
    /// # Errors
    /// [`PasskeyError::Refused`] when the answer is malformed.
    fn credential_id(&self, response: &Value) -> Result<String, PasskeyError>;

    /// Checks the answer of an authenticator that was to show this passkey.
    ///
    /// # Errors
    /// [`PasskeyError::Refused`]; [`PasskeyError::CounterWentBack`]; [`PasskeyError::Failed`] when the state or the passkey
    /// cannot be read.
    fn complete_authentication<'a>(
        &self,
        state: &JsonText,
        response: &Value,
        shown: &ShownPasskey<'a>,
    ) -> Result<UsedPasskey, PasskeyError>;
}
