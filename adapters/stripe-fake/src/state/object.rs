//! The parts that all objects have.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The text pairs that are attached to an object.
pub(crate) type Metadata = BTreeMap<String, String>;

/// The id, time and mode of an object.
pub(crate) struct Origin {
    pub(crate) id: String,
    pub(crate) created: i64,
    pub(crate) is_live: bool,
}

/// Changes metadata as a request asks. An empty value removes a pair.
pub(crate) fn merge(metadata: &mut Metadata, pairs: Vec<(String, String)>) {
    for (name, value) in pairs {
        if value.is_empty() {
            metadata.remove(&name);
        } else {
            metadata.insert(name, value);
        }
    }
}

/// Returns a list whose elements are all on one page.
pub(crate) fn embedded_list(data: Vec<Value>, has_more: bool, url: &str) -> Value {
    json!({"object": "list", "data": data, "has_more": has_more, "url": url})
}
