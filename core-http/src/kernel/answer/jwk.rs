//! Public keys as JSON.

use schemars::JsonSchema;
use serde::Serialize;

/// A public Ed25519 key to verify signatures with (RFC 8037).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct JsonWebKey {
    kty: &'static str,
    crv: &'static str,
    r#use: &'static str,
    alg: &'static str,
    kid: String,
    x: String,
}

impl JsonWebKey {
    /// The key of this name and these bytes, both in base64url.
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
