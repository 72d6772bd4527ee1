//! Registration and verification of passkeys: the cryptography of WebAuthn for one relying party.

use serde_json::Value;

use super::Cause;
use crate::kernel::{JsonText, UserId};

/// The reason why a ceremony cannot be started or completed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PasskeyError {
    /// The authenticator's response does not match the challenge: it is malformed, comes from another origin, lacks
    /// user verification, or has an invalid signature.
    #[error("the response of the authenticator is invalid")]
    Refused(#[source] Cause),
    /// The signature is valid, but the counter is not above its last value. A copy of the passkey may exist.
    #[error("the counter of the passkey did not increase")]
    CounterNotIncreased,
    /// An internal error: stored data cannot be read, or options cannot be created.
    #[error("passkeys failed")]
    Failed(#[source] Cause),
}

/// The user for whom a passkey is registered.
#[derive(Clone, Copy, Debug)]
pub struct PasskeyUser<'a> {
    /// The id of the user.
    pub id: &'a UserId,
    /// The account name that authenticators show, by which the person recognizes the account.
    pub name: &'a str,
    /// The name of the person.
    pub display_name: &'a str,
}

/// The start of a ceremony.
#[derive(Clone, Debug)]
pub struct PasskeyCeremony {
    /// The options for the browser, with the challenge. Binary values are in base64url.
    pub options: Value,
    /// The state that completes the ceremony. It stays on the server and is used once.
    pub state: JsonText,
}

/// A newly registered passkey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewPasskey {
    /// The id that the authenticator gave to the passkey, in base64url.
    pub credential_id: String,
    /// The public key and the other data that verify the passkey.
    pub credential: JsonText,
    /// The number of uses according to the authenticator; 0 if it does not count.
    pub counter: u32,
    /// Whether the authenticator can copy the passkey to other devices of the person.
    pub backup_eligible: bool,
    /// Whether the passkey has been copied to another device.
    pub backed_up: bool,
    /// The ways to reach the authenticator, such as `internal` or `usb`.
    pub transports: Vec<String>,
}

/// The stored data of a passkey that an authenticator presented.
#[derive(Clone, Copy, Debug)]
pub struct PresentedPasskey<'a> {
    /// The owner of the passkey.
    pub user_id: &'a UserId,
    /// The stored credential; see [`NewPasskey::credential`].
    pub credential: &'a JsonText,
}

/// The data to store after the use of a passkey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedPasskey {
    /// The updated credential; see [`NewPasskey::credential`].
    pub credential: JsonText,
    /// The updated counter; see [`NewPasskey::counter`].
    pub counter: u32,
    /// Whether a copy of the passkey exists now; see [`NewPasskey::backed_up`].
    pub backed_up: bool,
}

/// Registers and verifies passkeys. The authenticator must always verify the user (by finger, face or PIN); other
/// responses are rejected. The methods are fast and do no I/O, so they can be called inside a unit of work.
#[cfg_attr(any(test, feature = "testing"), mockall::automock)]
pub trait Passkeys: Send + Sync + std::fmt::Debug {
    /// Starts the registration of a passkey. Authenticators that already have one of the credentials in `existing` are
    /// excluded.
    ///
    /// # Errors
    /// [`PasskeyError::Failed`] if the options cannot be created.
    fn begin_registration<'a>(
        &self,
        user: &PasskeyUser<'a>,
        existing: &[String],
    ) -> Result<PasskeyCeremony, PasskeyError>;

    /// Verifies the authenticator's response to a registration.
    ///
    /// # Errors
    /// - [`PasskeyError::Refused`] if the response does not match the challenge.
    /// - [`PasskeyError::Failed`] if the state cannot be read.
    fn complete_registration(
        &self,
        state: &JsonText,
        response: &Value,
    ) -> Result<NewPasskey, PasskeyError>;

    /// Starts an authentication with any passkey: the options name no user and no credential.
    ///
    /// # Errors
    /// [`PasskeyError::Failed`] if the options cannot be created.
    fn begin_authentication(&self) -> Result<PasskeyCeremony, PasskeyError>;

    /// Returns the credential id in a response, in base64url. The id is not verified.
    ///
    /// # Errors
    /// [`PasskeyError::Refused`] if the response is malformed.
    fn credential_id(&self, response: &Value) -> Result<String, PasskeyError>;

    /// Verifies the authenticator's response to an authentication with this passkey.
    ///
    /// # Errors
    /// - [`PasskeyError::Refused`] if the response does not match the challenge.
    /// - [`PasskeyError::CounterNotIncreased`] if the counter of the passkey is not above its last value.
    /// - [`PasskeyError::Failed`] if the state or the stored passkey cannot be read.
    fn complete_authentication<'a>(
        &self,
        state: &JsonText,
        response: &Value,
        shown: &PresentedPasskey<'a>,
    ) -> Result<UsedPasskey, PasskeyError>;
}
