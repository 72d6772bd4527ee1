//! A KV namespace.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

/// A KV namespace with its values.
pub(crate) struct Namespace {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) values: BTreeMap<String, Stored>,
}

/// A stored value with its metadata.
pub(crate) struct Stored {
    pub(crate) bytes: Bytes,
    pub(crate) metadata: Option<Value>,
    pub(crate) expiration: Option<u64>,
}

impl Namespace {
    pub(crate) fn view(&self) -> Value {
        json!({"id": self.id, "title": self.title, "supports_url_encoding": true})
    }
}
