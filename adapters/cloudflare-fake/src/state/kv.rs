//! A KV namespace.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Value, json};

/// A KV namespace with its values.
pub(crate) struct Namespace {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) values: BTreeMap<String, Bytes>,
}

impl Namespace {
    pub(crate) fn view(&self) -> Value {
        json!({"id": self.id, "title": self.title, "supports_url_encoding": true})
    }
}
