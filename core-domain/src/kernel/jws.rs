//! Compact JSON Web Signatures with Ed25519 (RFC 7515, RFC 8037). No other algorithm is supported, and a key is never
//! read from a token.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Entropy;

/// The only supported algorithm.
const ALGORITHM: &str = "EdDSA";

/// Maximum length of a token in bytes. A longer token is malformed.
const MAX_TOKEN_BYTES: usize = 4 * 1024;

/// The reason why a token was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwsError {
    /// The token does not consist of three base64url parts, or its header is not a JSON object of the expected form.
    #[error("the token is malformed")]
    Malformed,
    /// The header names another algorithm or type, or requires an extension (`crit`).
    #[error("the token has another algorithm or type than expected")]
    WrongKind,
    /// The key did not sign the token.
    #[error("the signature is wrong")]
    WrongSignature,
}

/// An Ed25519 private key. Its `Debug` output does not contain the key.
#[derive(Clone)]
pub struct Ed25519Private(SigningKey);

// Keeps the key out of logs.
impl std::fmt::Debug for Ed25519Private {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ed25519Private(..)")
    }
}

impl Ed25519Private {
    /// Generates a new key.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let mut seed = [0; 32];
        entropy.fill(&mut seed);
        Self(SigningKey::from_bytes(&seed))
    }

    /// Creates a key from 32 secret bytes, such as bytes derived from an existing secret.
    #[must_use]
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(SigningKey::from_bytes(&seed))
    }

    /// Returns the secret key in base64url: the `d` parameter of a JSON Web Key.
    #[must_use]
    pub fn expose(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.to_bytes())
    }

    /// Parses a key that [`Self::expose`] returned; `None` if the text is invalid.
    #[must_use]
    pub fn from_base64url(text: &str) -> Option<Self> {
        let seed = URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?;
        Some(Self(SigningKey::from_bytes(&seed)))
    }

    /// Returns the public key that belongs to this key.
    #[must_use]
    pub fn public(&self) -> Ed25519Public {
        Ed25519Public(self.0.verifying_key())
    }

    /// Signs a payload and returns the token. `kind` becomes the `typ` of the header, `kid` the key id.
    pub(crate) fn sign(&self, kind: &str, kid: &str, payload: &[u8]) -> String {
        let header = Header {
            alg: ALGORITHM.to_owned(),
            typ: Some(kind.to_owned()),
            kid: Some(kid.to_owned()),
            crit: None,
        };
        // Serializing a struct of strings cannot fail.
        let header = serde_json::to_vec(&header).unwrap_or_default();
        let [header, payload] = [&header, payload].map(|part| URL_SAFE_NO_PAD.encode(part));
        let input = format!("{header}.{payload}");
        let signature = self.0.sign(input.as_bytes()).to_bytes();
        format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// An Ed25519 public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ed25519Public(VerifyingKey);

impl Ed25519Public {
    /// Returns the key in base64url: the `x` parameter of a JSON Web Key.
    #[must_use]
    pub fn x(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.to_bytes())
    }

    /// Parses a key that [`Self::x`] returned; `None` if the text is invalid.
    #[must_use]
    pub fn read(x: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(x).ok()?.try_into().ok()?;
        VerifyingKey::from_bytes(&bytes).ok().map(Self)
    }

    /// Returns the thumbprint of RFC 7638, which serves as the key id.
    #[must_use]
    pub fn thumbprint(&self) -> String {
        let canonical = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, self.x());
        URL_SAFE_NO_PAD.encode(Sha256::digest(canonical))
    }
}

/// The supported parameters of a header. Other parameters, such as `jwk`, `jku` and `x5u`, are ignored.
#[derive(Debug, Serialize, Deserialize)]
struct Header {
    alg: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    typ: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crit: Option<serde_json::Value>,
}

/// A token with an unchecked signature. Only the key id can be read from it.
#[derive(Debug)]
pub(crate) struct UnverifiedJws<'t> {
    header: Header,
    input: &'t str,
    payload: &'t str,
    signature: Signature,
}

impl<'t> UnverifiedJws<'t> {
    /// Parses a token without checking its signature.
    pub(crate) fn parse(token: &'t str) -> Result<Self, JwsError> {
        let malformed = |_| JwsError::Malformed;
        if token.len() > MAX_TOKEN_BYTES {
            return Err(JwsError::Malformed);
        }
        let (input, signature) = token.rsplit_once('.').ok_or(JwsError::Malformed)?;
        let (header, payload) = input.split_once('.').ok_or(JwsError::Malformed)?;
        let header = URL_SAFE_NO_PAD.decode(header).map_err(malformed)?;
        let header: Header = serde_json::from_slice(&header).map_err(|_| JwsError::Malformed)?;
        if header.alg != ALGORITHM || header.crit.is_some() {
            return Err(JwsError::WrongKind);
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(malformed)?;
        Ok(Self {
            header,
            input,
            payload,
            signature: Signature::from_slice(&signature).map_err(|_| JwsError::Malformed)?,
        })
    }

    /// Returns the token if its header has this type. The prefix `application/` may be absent (RFC 7515, section
    /// 4.1.9).
    pub(crate) fn of_type(self, kind: &str) -> Result<Self, JwsError> {
        let typ = self.header.typ.as_deref().unwrap_or_default();
        let short = typ.strip_prefix("application/").unwrap_or(typ);
        if short.eq_ignore_ascii_case(kind) {
            Ok(self)
        } else {
            Err(JwsError::WrongKind)
        }
    }

    /// Returns the id of the key that signed the token, as stated in its header.
    pub(crate) fn kid(&self) -> Option<&str> {
        self.header.kid.as_deref()
    }

    /// Returns the payload if the key signed the token.
    pub(crate) fn payload(&self, key: &Ed25519Public) -> Result<Vec<u8>, JwsError> {
        let verified = key.0.verify_strict(self.input.as_bytes(), &self.signature);
        verified.map_err(|_| JwsError::WrongSignature)?;
        let payload = URL_SAFE_NO_PAD.decode(self.payload);
        payload.map_err(|_| JwsError::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The keys and the token of RFC 8037, appendix A.
    const D: &str = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";
    const X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    const THUMBPRINT: &str = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";
    const JWS: &str = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.\
        hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

    fn key() -> Ed25519Private {
        Ed25519Private::from_base64url(D).unwrap()
    }

    #[test]
    fn test_vectors_of_rfc_8037_pass() {
        assert_eq!(key().public().x(), X);
        assert_eq!(key().public().thumbprint(), THUMBPRINT);
        assert_eq!(key().expose(), D);
        let token = UnverifiedJws::parse(JWS).unwrap();
        let payload = token.payload(&key().public()).unwrap();
        assert_eq!(payload, b"Example of Ed25519 signing");
        let (input, signature) = JWS.rsplit_once('.').unwrap();
        let signed = key().0.sign(input.as_bytes()).to_bytes();
        assert_eq!(URL_SAFE_NO_PAD.encode(signed), signature);
    }

    #[test]
    fn modified_tokens_and_tokens_of_another_key_are_refused() {
        let token = key().sign("at+jwt", "k", b"{\"a\":1}");
        let public = key().public();
        let read = |token: &str| UnverifiedJws::parse(token).and_then(|t| t.payload(&public));
        assert_eq!(read(&token).unwrap(), b"{\"a\":1}");
        for at in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(read(&changed).is_err(), "{changed}");
        }
        let other = Ed25519Private::from_base64url(X)
            .unwrap()
            .sign("at+jwt", "k", b"{}");
        assert_eq!(read(&other), Err(JwsError::WrongSignature));
    }

    fn with_header(header: &str) -> String {
        let [header, payload] = [header, "{}"].map(|part| URL_SAFE_NO_PAD.encode(part));
        let input = format!("{header}.{payload}");
        let signature = key().0.sign(input.as_bytes()).to_bytes();
        format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    #[test]
    fn the_header_cannot_select_an_algorithm_a_key_or_an_extension() {
        for refused in [
            r#"{"alg":"none"}"#,
            r#"{"alg":"HS256"}"#,
            r#"{"alg":"eddsa"}"#,
            r#"{"alg":"EdDSA","crit":["b64"],"b64":false}"#,
        ] {
            let token = with_header(refused);
            assert_eq!(
                UnverifiedJws::parse(&token).unwrap_err(),
                JwsError::WrongKind
            );
        }
        let other = Ed25519Private::from_base64url(X).unwrap().public();
        let brought = format!(
            r#"{{"alg":"EdDSA","jku":"https://evil.example","x5u":"https://evil.example","jwk":{{"kty":"OKP","crv":"Ed25519","x":"{X}"}}}}"#
        );
        let token = with_header(&brought);
        let token = UnverifiedJws::parse(&token).unwrap();
        assert_eq!(token.payload(&other), Err(JwsError::WrongSignature));
        assert!(token.payload(&key().public()).is_ok());
    }

    #[test]
    fn types_are_compared_without_case_and_without_the_application_prefix() {
        for (header, fits) in [
            (r#"{"alg":"EdDSA","typ":"at+jwt"}"#, true),
            (r#"{"alg":"EdDSA","typ":"application/AT+JWT"}"#, true),
            (r#"{"alg":"EdDSA","typ":"JWT"}"#, false),
            (r#"{"alg":"EdDSA"}"#, false),
        ] {
            let token = with_header(header);
            let token = UnverifiedJws::parse(&token).unwrap();
            assert_eq!(token.of_type("at+jwt").is_ok(), fits, "{header}");
        }
    }

    #[test]
    fn text_that_is_not_a_compact_signature_is_refused() {
        let long = "a".repeat(MAX_TOKEN_BYTES + 1);
        for text in [
            "",
            ".",
            "..",
            "a.b",
            "a.b.c",
            "e30.e30.e30",
            "e30.e30.e30.e30.e30",
            &long,
        ] {
            assert!(UnverifiedJws::parse(text).is_err(), "{text:.20}");
        }
    }
}
