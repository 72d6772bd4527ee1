//! Public keys as JSON Web Keys.

use schemars::JsonSchema;
use serde::Serialize;

/// A public Ed25519 key for verifying signatures, as a JSON Web Key (RFC 8037).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JsonWebKey {
    /// The key type; always `OKP`.
    kty: &'static str,
    /// The curve; always `Ed25519`.
    crv: &'static str,
    /// The intended use; always `sig`, for signatures.
    r#use: &'static str,
    /// The signature algorithm; always `EdDSA`.
    alg: &'static str,
    /// The key id, which signatures name.
    kid: String,
    /// The 32 bytes of the public key, in base64url.
    x: String,
}

impl JsonWebKey {
    /// Creates a key from its id and its public bytes, which are in base64url.
    #[must_use]
    pub fn new(kid: &str, x: &str) -> Self {
        Self {
            kty: "OKP",
            crv: "Ed25519",
            r#use: "sig",
            alg: "EdDSA",
            kid: kid.to_owned(),
            x: x.to_owned(),
        }
    }
}
