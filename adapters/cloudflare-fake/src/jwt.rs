//! The short-lived tokens of uploads.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

const HEADER: &str = r#"{"alg":"HS256","typ":"JWT"}"#;

/// Creates a token with a payload that its holder can read but not change.
pub(crate) fn sign(payload: &Value) -> String {
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let signed = format!("{}.{}", encode(HEADER), encode(&payload.to_string()));
    let signature = signature(&signed);
    format!("{signed}.{signature}")
}

/// Returns the payload of a token that [`sign`] created; `None` for any other text.
pub(crate) fn verify(token: &str) -> Option<Value> {
    let (signed, own) = token.rsplit_once('.')?;
    let (_, payload) = signed.split_once('.')?;
    let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
    let payload = serde_json::from_slice(&payload).ok()?;
    (signature(signed) == own).then_some(payload)
}

/// Returns the signature of a token. Only the fake checks it.
fn signature(signed: &str) -> String {
    let hash = blake3::derive_key("core-cloudflare-fake upload tokens", signed.as_bytes());
    URL_SAFE_NO_PAD.encode(hash)
}
