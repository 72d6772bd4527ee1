//! An R2 bucket.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

/// An R2 bucket with its objects.
pub(crate) struct Bucket {
    pub(crate) name: String,
    pub(crate) jurisdiction: String,
    pub(crate) objects: BTreeMap<String, Object>,
    pub(crate) created: String,
    pub(crate) location: String,
    pub(crate) storage_class: String,
}

/// An object of a bucket.
pub(crate) struct Object {
    pub(crate) bytes: Bytes,
    pub(crate) content_type: Option<String>,
    pub(crate) modified: String,
}

impl Bucket {
    pub(crate) fn view(&self) -> Value {
        json!({
            "name": self.name,
            "creation_date": self.created,
            "location": self.location,
            "storage_class": self.storage_class,
            "jurisdiction": self.jurisdiction,
        })
    }
}

impl Object {
    pub(crate) fn view(&self, key: &str, storage_class: &str) -> Value {
        json!({
            "key": key,
            "etag": blake3::hash(&self.bytes).to_hex()[..32],
            "last_modified": self.modified,
            "size": self.bytes.len(),
            "http_metadata": {"contentType": self.content_type.as_deref().unwrap_or("application/octet-stream")},
            "custom_metadata": {},
            "storage_class": storage_class,
        })
    }
}
