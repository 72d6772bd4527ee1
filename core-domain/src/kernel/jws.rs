//! Compact JSON Web Signatures with Ed25519 (RFC 7515, RFC 8037) and with nothing else: no other algorithm is known here, and
//! no key is ever taken from a token.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Entropy;

/// The one algorithm.
const ALGORITHM: &str = "EdDSA";

/// The longest token that is looked at, in bytes.
const LONGEST: usize = 4 * 1024;

/// Why a text is not a signature we accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JwsError {
    /// It is not of three parts of base64url, or its header is no JSON object.
    #[error("the token is malformed")]
    Malformed,
    /// It says another algorithm or type than the one expected, or asks for an extension.
    #[error("the token is not of the kind expected")]
    WrongKind,
    /// It was not signed with the key.
    #[error("the signature is wrong")]
    WrongSignature,
}

/// A private key.
#[derive(Clone)]
pub struct Ed25519Private(SigningKey);

// The key stays out of logs.
impl std::fmt::Debug for Ed25519Private {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Ed25519Private(..)")
    }
}

impl Ed25519Private {
    /// A new key.
    #[must_use]
    pub fn generate(entropy: &dyn Entropy) -> Self {
        let mut seed = [0; 32];
        entropy.fill(&mut seed);
        Self(SigningKey::from_bytes(&seed))
    }

    /// The key that belongs to 32 secret bytes: derived from a secret there is already.
    #[must_use]
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(SigningKey::from_bytes(&seed))
    }

    /// The key as text, base64url: the `d` of a JSON Web Key. A secret.
    #[must_use]
    pub fn expose(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.to_bytes())
    }

    /// Reads what [`Self::expose`] wrote.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let seed = URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()?;
        Some(Self(SigningKey::from_bytes(&seed)))
    }

    /// The public key that belongs to it.
    #[must_use]
    pub fn public(&self) -> Ed25519Public {
        Ed25519Public(self.0.verifying_key())
    }

    /// A payload, signed, under a header of this type.
    pub(crate) fn signed(&self, kind: &str, kid: &str, payload: &[u8]) -> String {
        let header = Header {
            alg: ALGORITHM.to_owned(),
            typ: Some(kind.to_owned()),
            kid: Some(kid.to_owned()),
            crit: None,
        };
        // A struct of texts is always JSON.
        let header = serde_json::to_vec(&header).unwrap_or_default();
        let [header, payload] = [&header, payload].map(|part| URL_SAFE_NO_PAD.encode(part));
        let input = format!("{header}.{payload}");
        let signature = self.0.sign(input.as_bytes()).to_bytes();
        format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// A public key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ed25519Public(VerifyingKey);

impl Ed25519Public {
    /// The key as text, base64url: the `x` of a JSON Web Key.
    #[must_use]
    pub fn x(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.to_bytes())
    }

    /// Reads what [`Self::x`] wrote.
    #[must_use]
    pub fn read(x: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(x).ok()?.try_into().ok()?;
        VerifyingKey::from_bytes(&bytes).ok().map(Self)
    }

    /// The thumbprint of RFC 7638, by which the key is named.
    #[must_use]
    pub fn thumbprint(&self) -> String {
        let canonical = format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{}"}}"#, self.x());
        URL_SAFE_NO_PAD.encode(Sha256::digest(canonical))
    }
}

/// What is read of a header. Whatever else it holds (`jwk`, `jku`, `x5u`) is not even looked at.
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

/// A token whose signature was not checked yet: nothing of it is shown but the name of its key.
#[derive(Debug)]
pub(crate) struct Unverified<'t> {
    header: Header,
    input: &'t str,
    payload: &'t str,
    signature: Signature,
}

impl<'t> Unverified<'t> {
    /// Reads a token.
    pub(crate) fn parse(token: &'t str) -> Result<Self, JwsError> {
        let malformed = |_| JwsError::Malformed;
        if token.len() > LONGEST {
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

    /// The token, provided it says that it is of this type (RFC 7515, section 4.1.9: `application/` may be left out).
    pub(crate) fn of_type(self, kind: &str) -> Result<Self, JwsError> {
        let typ = self.header.typ.as_deref().unwrap_or_default();
        let short = typ.strip_prefix("application/").unwrap_or(typ);
        if short.eq_ignore_ascii_case(kind) {
            Ok(self)
        } else {
            Err(JwsError::WrongKind)
        }
    }

    /// The name of the key it says it was signed with.
    pub(crate) fn kid(&self) -> Option<&str> {
        self.header.kid.as_deref()
    }

    /// The payload, provided it was signed with this key.
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

    // RFC 8037, appendix A.
    const D: &str = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A";
    const X: &str = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
    const THUMBPRINT: &str = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";
    const JWS: &str = "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc.\
        hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg";

    fn key() -> Ed25519Private {
        Ed25519Private::read(D).unwrap()
    }

    #[test]
    fn the_vectors_of_rfc_8037_are_kept() {
        assert_eq!(key().public().x(), X);
        assert_eq!(key().public().thumbprint(), THUMBPRINT);
        assert_eq!(key().expose(), D);
        let token = Unverified::parse(JWS).unwrap();
        let payload = token.payload(&key().public()).unwrap();
        assert_eq!(payload, b"Example of Ed25519 signing");
        let (input, signature) = JWS.rsplit_once('.').unwrap();
        let signed = key().0.sign(input.as_bytes()).to_bytes();
        assert_eq!(URL_SAFE_NO_PAD.encode(signed), signature);
    }

    #[test]
    fn what_was_changed_in_any_part_or_signed_by_another_is_refused() {
        let token = key().signed("at+jwt", "k", b"{\"a\":1}");
        let public = key().public();
        let read = |token: &str| Unverified::parse(token).and_then(|t| t.payload(&public));
        assert_eq!(read(&token).unwrap(), b"{\"a\":1}");
        for at in 0..token.len() {
            let mut bytes = token.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(bytes).unwrap();
            assert!(read(&changed).is_err(), "{changed}");
        }
        let other = Ed25519Private::read(X)
            .unwrap()
            .signed("at+jwt", "k", b"{}");
        assert_eq!(read(&other), Err(JwsError::WrongSignature));
    }

    fn with_header(header: &str) -> String {
        let [header, payload] = [header, "{}"].map(|part| URL_SAFE_NO_PAD.encode(part));
        let input = format!("{header}.{payload}");
        let signature = key().0.sign(input.as_bytes()).to_bytes();
        format!("{input}.{}", URL_SAFE_NO_PAD.encode(signature))
    }

    #[test]
    fn the_header_cannot_choose_the_algorithm_or_bring_a_key_or_an_extension() {
        for refused in [
            r#"{"alg":"none"}"#,
            r#"{"alg":"HS256"}"#,
            r#"{"alg":"eddsa"}"#,
            r#"{"alg":"EdDSA","crit":["b64"],"b64":false}"#,
        ] {
            let token = with_header(refused);
            assert_eq!(Unverified::parse(&token).unwrap_err(), JwsError::WrongKind);
        }
        let other = Ed25519Private::read(X).unwrap().public();
        let brought = format!(
            r#"{{"alg":"EdDSA","jku":"https://evil.example","x5u":"https://evil.example","jwk":{{"kty":"OKP","crv":"Ed25519","x":"{X}"}}}}"#
        );
        let token = with_header(&brought);
        let token = Unverified::parse(&token).unwrap();
        assert_eq!(token.payload(&other), Err(JwsError::WrongSignature));
        assert!(token.payload(&key().public()).is_ok());
    }

    #[test]
    fn a_type_is_compared_without_case_and_with_or_without_application() {
        for (header, fits) in [
            (r#"{"alg":"EdDSA","typ":"at+jwt"}"#, true),
            (r#"{"alg":"EdDSA","typ":"application/AT+JWT"}"#, true),
            (r#"{"alg":"EdDSA","typ":"JWT"}"#, false),
            (r#"{"alg":"EdDSA"}"#, false),
        ] {
            let token = with_header(header);
            let token = Unverified::parse(&token).unwrap();
            assert_eq!(token.of_type("at+jwt").is_ok(), fits, "{header}");
        }
    }

    #[test]
    fn what_is_no_compact_signature_is_malformed() {
        let long = "a".repeat(LONGEST + 1);
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
            assert!(Unverified::parse(text).is_err(), "{text:.20}");
        }
    }
}
