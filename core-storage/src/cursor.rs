//! Cursors: sealed places in a list.
//!
//! A cursor holds the order values of the last row seen and the list's total. Its tag also covers the question it
//! belongs to, so it works for that question alone and cannot be made up.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use core_domain::kernel::Cursor;
use core_domain::port::StoreError;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;

use crate::query::Select;
use crate::value::Value;

/// Part of the tag: a cursor of another format is none of ours.
const FORMAT: &str = "cursor 1";
const TAG_BYTES: usize = 16;
/// The longest cursor that is looked at, in characters.
const MAX_LENGTH: usize = 4_096;

/// The secret cursors are sealed with. Servers on one database share it; a change of it only ends open lists.
#[derive(Clone)]
pub struct CursorKey([u8; 32]);

impl std::fmt::Debug for CursorKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CursorKey(..)")
    }
}

impl From<[u8; 32]> for CursorKey {
    fn from(key: [u8; 32]) -> Self {
        Self(key)
    }
}

/// An opened cursor.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) after: Vec<Value>,
    pub(crate) total: u64,
}

impl CursorKey {
    fn tag(&self, select: &Select, payload: &[u8]) -> Option<Hmac<Sha256>> {
        let question = format!(
            "{FORMAT}\0{}\0{:?}\0{:?}\0",
            select.table.name, select.filter, select.order
        );
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(question.as_bytes());
        mac.update(payload);
        Some(mac)
    }

    pub(crate) fn seal(&self, select: &Select, place: &Place) -> Result<Cursor, StoreError> {
        let after: Vec<serde_json::Value> = place.after.iter().map(to_json).collect();
        let payload = json!([place.total, after]).to_string();
        let mac = self
            .tag(select, payload.as_bytes())
            .ok_or_else(|| StoreError::Backend("the cursor key cannot be used".into()))?;
        let mut sealed = mac.finalize().into_bytes()[..TAG_BYTES].to_vec();
        sealed.extend_from_slice(payload.as_bytes());
        Ok(Cursor(URL_SAFE_NO_PAD.encode(sealed)))
    }

    pub(crate) fn open(&self, select: &Select, cursor: &Cursor) -> Result<Place, StoreError> {
        self.read(select, cursor).ok_or(StoreError::InvalidCursor)
    }

    fn read(&self, select: &Select, cursor: &Cursor) -> Option<Place> {
        if cursor.0.len() > MAX_LENGTH {
            return None;
        }
        let sealed = URL_SAFE_NO_PAD.decode(&cursor.0).ok()?;
        let (tag, payload) = sealed.split_at_checked(TAG_BYTES)?;
        self.tag(select, payload)?.verify_truncated_left(tag).ok()?;
        let (total, after): (u64, Vec<serde_json::Value>) = serde_json::from_slice(payload).ok()?;
        let after = after.iter().map(from_json).collect::<Option<Vec<_>>>()?;
        (after.len() == select.full_order().len()).then_some(Place { after, total })
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
