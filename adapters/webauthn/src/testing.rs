//! A software authenticator for tests. It creates real keys and signatures, and misbehaves on request.

#![expect(clippy::unwrap_used, reason = "what helps a test fails with the test")]

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use p256::ecdsa::signature::Signer;
use p256::ecdsa::{Signature, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const USER_PRESENT: u8 = 0x01;
const USER_VERIFIED: u8 = 0x04;
const BACKUP_ELIGIBLE: u8 = 0x08;
const BACKED_UP: u8 = 0x10;
const HAS_CREDENTIAL: u8 = 0x40;

/// An authenticator with one passkey, in a browser that shows a page of an origin.
#[derive(Clone)]
pub struct SoftAuthenticator {
    key: SigningKey,
    /// The id of the passkey.
    pub credential_id: Vec<u8>,
    /// The handle of the user for whom the passkey was created; `None` before.
    pub user_handle: Option<String>,
    /// The origin of the page.
    pub origin: String,
    /// The number of uses of the passkey. It stays 0 if the authenticator does not count.
    pub counter: u32,
    /// Whether the authenticator counts the uses. Default: `true`.
    pub counts: bool,
    /// Whether the authenticator verifies the user. Default: `true`.
    pub verifies_user: bool,
    /// Whether the passkey is copied to other devices. Default: `false`.
    pub backed_up: bool,
}

impl std::fmt::Debug for SoftAuthenticator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SoftAuthenticator")
            .field("origin", &self.origin)
            .field("counter", &self.counter)
            .finish_non_exhaustive()
    }
}

impl SoftAuthenticator {
    /// Creates an authenticator whose key is derived from the seed.
    #[must_use]
    pub fn new(seed: u8, origin: &str) -> Self {
        let seed = Sha256::digest([seed, 1]);
        Self {
            key: SigningKey::from_slice(&seed).unwrap(),
            credential_id: Sha256::digest(seed).to_vec(),
            user_handle: None,
            origin: origin.to_owned(),
            counter: 0,
            counts: true,
            verifies_user: true,
            backed_up: false,
        }
    }

    /// Returns the id of the passkey in the encoding of browsers (base64url).
    #[must_use]
    pub fn id(&self) -> String {
        URL_SAFE_NO_PAD.encode(&self.credential_id)
    }

    /// Returns the result of `navigator.credentials.create` for these options.
    pub fn create(&mut self, options: &Value) -> Value {
        self.user_handle = options["user"]["id"].as_str().map(str::to_owned);
        let relying_party = options["rp"]["id"].as_str().unwrap();
        let mut data = self.authenticator_data(relying_party, HAS_CREDENTIAL);
        data.extend([0; 16]);
        data.extend(
            u16::try_from(self.credential_id.len())
                .unwrap()
                .to_be_bytes(),
        );
        data.extend(&self.credential_id);
        data.extend(self.cose_key());
        // {"fmt": "none", "attStmt": {}, "authData": data}
        let mut object = vec![0xa3];
        object.extend(b"\x63fmt\x64none\x67attStmt\xa0\x68authData\x59");
        object.extend(u16::try_from(data.len()).unwrap().to_be_bytes());
        object.extend(data);
        self.answer(&json!({
            "attestationObject": URL_SAFE_NO_PAD.encode(object),
            "clientDataJSON": self.client_data("webauthn.create", options),
            "transports": ["internal"],
        }))
    }

    /// Returns the result of `navigator.credentials.get` for these options.
    pub fn get(&mut self, options: &Value) -> Value {
        let relying_party = options["rpId"].as_str().unwrap();
        let data = self.authenticator_data(relying_party, 0);
        let client_data = self.client_data("webauthn.get", options);
        let client_bytes = URL_SAFE_NO_PAD.decode(&client_data).unwrap();
        let mut signed = data.clone();
        signed.extend(Sha256::digest(client_bytes));
        let signature: Signature = self.key.sign(&signed);
        self.answer(&json!({
            "authenticatorData": URL_SAFE_NO_PAD.encode(data),
            "clientDataJSON": client_data,
            "signature": URL_SAFE_NO_PAD.encode(signature.to_der().as_bytes()),
            "userHandle": self.user_handle,
        }))
    }

    fn answer(&self, response: &Value) -> Value {
        json!({
            "id": self.id(),
            "rawId": self.id(),
            "type": "public-key",
            "authenticatorAttachment": "platform",
            "response": response,
        })
    }

    fn client_data(&self, kind: &str, options: &Value) -> String {
        let data = json!({
            "type": kind,
            "challenge": options["challenge"],
            "origin": self.origin,
            "crossOrigin": false,
        });
        URL_SAFE_NO_PAD.encode(data.to_string())
    }

    fn authenticator_data(&mut self, relying_party: &str, flags: u8) -> Vec<u8> {
        self.counter += u32::from(self.counts);
        let mut flags = flags | USER_PRESENT;
        if self.verifies_user {
            flags |= USER_VERIFIED;
        }
        if self.backed_up {
            flags |= BACKUP_ELIGIBLE | BACKED_UP;
        }
        let mut data = Sha256::digest(relying_party).to_vec();
        data.push(flags);
        data.extend(self.counter.to_be_bytes());
        data
    }

    /// Returns the COSE key `{1: 2, 3: -7, -1: 1, -2: x, -3: y}`: a P-256 key for ES256.
    fn cose_key(&self) -> Vec<u8> {
        let point = self.key.verifying_key().to_sec1_point(false);
        let mut key = vec![0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 0x20];
        key.extend(point.x().unwrap());
        key.extend([0x22, 0x58, 0x20]);
        key.extend(point.y().unwrap());
        key
    }
}
