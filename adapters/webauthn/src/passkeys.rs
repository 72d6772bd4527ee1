//! Implements the passkey port with `webauthn-rs`.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use core_domain::iam::PASSKEY_CHALLENGE_LIFETIME;
use core_domain::kernel::{JsonText, UserId};
use core_domain::port::{
    Cause, NewPasskey, PasskeyCeremony, PasskeyError, PasskeyUser, Passkeys, PresentedPasskey,
    UsedPasskey,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use webauthn_rs::prelude::{
    Credential, CredentialID, DiscoverableAuthentication, Passkey, PasskeyRegistration,
    PublicKeyCredential, RegisterPublicKeyCredential, Url, Uuid, WebauthnBuilder,
    WebauthnError as Fault,
};

/// The error for a base URL that does not support passkeys.
#[derive(Debug, thiserror::Error)]
#[error("passkeys need a base URL with a domain name, such as https://iam.example.org, not {0:?}")]
pub struct WebauthnError(String);

/// Registers and verifies passkeys for one relying party.
#[derive(Clone)]
pub struct Webauthn {
    inner: webauthn_rs::Webauthn,
    relying_party: String,
}

impl fmt::Debug for Webauthn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webauthn")
            .field("relying_party", &self.relying_party)
            .finish_non_exhaustive()
    }
}

impl Webauthn {
    /// Creates the relying party from IAM's base URL, whose host is its id. Accepts passkeys from pages of the base URL
    /// and of the trusted origins. Browsers allow only origins with the same host or a subdomain of it.
    ///
    /// # Errors
    /// [`WebauthnError`] if the base URL has no domain name.
    pub fn new(base_url: &str, trusted_origins: &[String]) -> Result<Self, WebauthnError> {
        let refused = || WebauthnError(base_url.to_owned());
        let origin = Url::parse(base_url).map_err(|_| refused())?;
        let relying_party = origin.domain().ok_or_else(refused)?.to_owned();
        let builder = WebauthnBuilder::new(&relying_party, &origin).map_err(|_| refused())?;
        let mut builder = builder
            .rp_name(&relying_party)
            .timeout(PASSKEY_CHALLENGE_LIFETIME);
        for origin in trusted_origins.iter().filter_map(|o| Url::parse(o).ok()) {
            builder = builder.append_allowed_origin(&origin);
        }
        Ok(Self {
            inner: builder.build().map_err(|_| refused())?,
            relying_party,
        })
    }
}

impl Passkeys for Webauthn {
    fn begin_registration(
        &self,
        user: &PasskeyUser<'_>,
        existing: &[String],
    ) -> Result<PasskeyCeremony, PasskeyError> {
        let existing = existing.iter().filter_map(|id| credential_id_of(id));
        let (options, state) = self
            .inner
            .start_passkey_registration(
                user_handle(user.id),
                user.name,
                user.display_name,
                Some(existing.collect()),
            )
            .map_err(failure)?;
        // Sign-in asks for no user name, so the authenticator must store the passkey to find it (a discoverable
        // credential).
        let mut options = to_value(&options.public_key)?;
        options["authenticatorSelection"] = json!({
            "residentKey": "required",
            "requireResidentKey": true,
            "userVerification": "required",
        });
        Ok(PasskeyCeremony {
            options,
            state: JsonText::of(&state),
        })
    }

    fn complete_registration(
        &self,
        state: &JsonText,
        response: &Value,
    ) -> Result<NewPasskey, PasskeyError> {
        let state: PasskeyRegistration = parse_stored(state)?;
        let response: RegisterPublicKeyCredential = parse_response(response)?;
        let passkey = self
            .inner
            .finish_passkey_registration(&response, &state)
            .map_err(refusal)?;
        let transports = response.response.transports.unwrap_or_default();
        let transports = transports.iter().filter_map(|t| to_value(t).ok());
        let transports = transports.filter_map(|t| t.as_str().map(str::to_owned));
        let transports = transports.filter(|t| t != "unknown").collect();
        let kept = JsonText::of(&passkey);
        let credential = Credential::from(passkey);
        Ok(NewPasskey {
            credential_id: URL_SAFE_NO_PAD.encode(&credential.cred_id),
            credential: kept,
            counter: credential.counter,
            backup_eligible: credential.backup_eligible,
            backed_up: credential.backup_state,
            transports,
        })
    }

    fn begin_authentication(&self) -> Result<PasskeyCeremony, PasskeyError> {
        let (options, state) = self
            .inner
            .start_discoverable_authentication()
            .map_err(failure)?;
        Ok(PasskeyCeremony {
            options: to_value(&options.public_key)?,
            state: JsonText::of(&state),
        })
    }

    fn credential_id(&self, response: &Value) -> Result<String, PasskeyError> {
        let response: PublicKeyCredential = parse_response(response)?;
        Ok(URL_SAFE_NO_PAD.encode(response.get_credential_id()))
    }

    fn complete_authentication(
        &self,
        state: &JsonText,
        response: &Value,
        shown: &PresentedPasskey<'_>,
    ) -> Result<UsedPasskey, PasskeyError> {
        let state: DiscoverableAuthentication = parse_stored(state)?;
        let mut passkey: Passkey = parse_stored(shown.credential)?;
        let response: PublicKeyCredential = parse_response(response)?;
        let (handle, _) = self
            .inner
            .identify_discoverable_authentication(&response)
            .map_err(refusal)?;
        if handle != user_handle(shown.user_id) {
            return Err(PasskeyError::Refused(
                "the passkey belongs to another user".into(),
            ));
        }
        let result = self
            .inner
            .finish_discoverable_authentication_v2(&response, state, &passkey)
            .map_err(refusal)?;
        if !result.user_verified() {
            return Err(refusal(Fault::UserNotVerified));
        }
        passkey.update_credential(&result);
        Ok(UsedPasskey {
            credential: JsonText::of(&passkey),
            counter: result.counter(),
            backed_up: result.backup_state(),
        })
    }
}

/// Returns the handle by which authenticators know a user. It is a hash of the user's id, because ids can have any form
/// and the handle should not reveal them.
fn user_handle(id: &UserId) -> Uuid {
    let digest = Sha256::digest(format!("passkey user handle:{id}"));
    let mut handle = [0; 16];
    for (to, from) in handle.iter_mut().zip(digest) {
        *to = from;
    }
    Uuid::from_bytes(handle)
}

fn credential_id_of(text: &str) -> Option<CredentialID> {
    URL_SAFE_NO_PAD.decode(text).ok()
}

fn to_value(value: &impl Serialize) -> Result<Value, PasskeyError> {
    serde_json::to_value(value).map_err(|error| PasskeyError::Failed(Cause::new(error)))
}

/// Decodes state or a credential that this module has created.
fn parse_stored<T: DeserializeOwned>(text: &JsonText) -> Result<T, PasskeyError> {
    serde_json::from_str(text.as_str()).map_err(|error| PasskeyError::Failed(Cause::new(error)))
}

/// Decodes a response that a client has sent.
fn parse_response<T: DeserializeOwned>(response: &Value) -> Result<T, PasskeyError> {
    T::deserialize(response).map_err(|error| PasskeyError::Refused(Cause::new(error)))
}

fn failure(error: Fault) -> PasskeyError {
    PasskeyError::Failed(Cause::new(error))
}

fn refusal(error: Fault) -> PasskeyError {
    match error {
        Fault::CredentialPossibleCompromise => PasskeyError::CounterNotIncreased,
        error => PasskeyError::Refused(Cause::new(error)),
    }
}
