//! Cursors: signed keyset positions.
//!
//! A cursor holds the values of the last row in the columns of the order, and the list's total. Its MAC also covers the
//! query, so a cursor is valid for that query alone and cannot be forged.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use core_domain::kernel::{Cursor, StoreError};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;

use crate::canonical::Canonical;
use crate::query::Select;
use crate::value::Value;

/// Part of the MAC. Cursors of another format are invalid.
const FORMAT: &[u8] = b"cursor 2";
/// The length to which the MAC is truncated, in bytes.
const MAC_BYTES: usize = 16;
/// The maximum length of a cursor, in characters. Longer cursors are invalid without a check of the MAC.
const MAX_CURSOR_CHARS: usize = 4_096;

/// The secret key that signs cursors. All servers on one database share it. A new key makes the cursors of open lists
/// invalid and has no other effect.
#[derive(Clone)]
pub struct CursorKey(Hmac<Sha256>);

impl std::fmt::Debug for CursorKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CursorKey(..)")
    }
}

impl From<[u8; 32]> for CursorKey {
    fn from(key: [u8; 32]) -> Self {
        // HMAC pads a key that is shorter than a block with zeros.
        let mut block = [0; 64];
        block[..key.len()].copy_from_slice(&key);
        Self(Hmac::new(&block.into()))
    }
}

/// The contents of a cursor: the position at which a page ended, and the total of the list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeysetPosition {
    pub(crate) after: Vec<Value>,
    pub(crate) total: u64,
}

impl CursorKey {
    fn mac(&self, select: &Select, payload: &[u8]) -> Hmac<Sha256> {
        let query = Canonical::filter(select.table.name, &select.filter).order(&select.order);
        let mut mac = self.0.clone();
        mac.update(FORMAT);
        mac.update(&query.into_bytes());
        mac.update(payload);
        mac
    }

    pub(crate) fn sign(&self, select: &Select, position: &KeysetPosition) -> Cursor {
        let after: Vec<serde_json::Value> = position.after.iter().map(to_json).collect();
        let payload = json!([position.total, after]).to_string();
        let mac = self.mac(select, payload.as_bytes());
        let mut signed = mac.finalize().into_bytes()[..MAC_BYTES].to_vec();
        signed.extend_from_slice(payload.as_bytes());
        Cursor(URL_SAFE_NO_PAD.encode(signed))
    }

    pub(crate) fn verify(
        &self,
        select: &Select,
        cursor: &Cursor,
    ) -> Result<KeysetPosition, StoreError> {
        self.decode(select, cursor).ok_or(StoreError::InvalidCursor)
    }

    fn decode(&self, select: &Select, cursor: &Cursor) -> Option<KeysetPosition> {
        if cursor.0.len() > MAX_CURSOR_CHARS {
            return None;
        }
        let signed = URL_SAFE_NO_PAD.decode(&cursor.0).ok()?;
        let (mac, payload) = signed.split_at_checked(MAC_BYTES)?;
        let signed = self.mac(select, payload);
        signed.verify_truncated_left(mac).ok()?;
        let (total, after): (u64, Vec<serde_json::Value>) = serde_json::from_slice(payload).ok()?;
        let after = after.iter().map(from_json).collect::<Option<Vec<_>>>()?;
        (after.len() == select.full_order().len()).then_some(KeysetPosition { after, total })
    }
}

fn to_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(yes) => json!(yes),
        Value::Int(number) => json!(number),
        Value::Text(text) => json!(&**text),
    }
}

fn from_json(value: &serde_json::Value) -> Option<Value> {
    match value {
        serde_json::Value::Bool(yes) => Some(Value::Bool(*yes)),
        serde_json::Value::Number(number) => number.as_i64().map(Value::Int),
        serde_json::Value::String(text) => Some(Value::text(text)),
        _ => None,
    }
}
