//! Conversion of objects to and from the JSON of `workerd`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::object::{ObjectInfo, ObjectMetadata};

/// The name of the content type in the HTTP metadata of R2.
const CONTENT_TYPE: &str = "contentType";
const NO_TYPE: &str = "application/octet-stream";

/// A name and its value: the JSON form of a map entry.
#[derive(Deserialize, Serialize)]
pub(super) struct Pair {
    k: String,
    v: String,
}

/// Returns the metadata of an object that a script writes.
pub(super) fn metadata(http: &Map<String, Value>, custom: Vec<Pair>) -> ObjectMetadata {
    let text = |value: &Value| {
        value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned)
    };
    let mut http: BTreeMap<String, String> = http
        .iter()
        .map(|(name, value)| (name.clone(), text(value)))
        .collect();
    ObjectMetadata {
        content_type: http
            .remove(CONTENT_TYPE)
            .unwrap_or_else(|| NO_TYPE.to_owned()),
        http,
        custom: custom.into_iter().map(|pair| (pair.k, pair.v)).collect(),
    }
}

/// Returns the JSON description of an object.
pub(super) fn to_json(info: &ObjectInfo) -> Value {
    let mut http: Map<String, Value> = info
        .http
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().into()))
        .collect();
    http.insert(CONTENT_TYPE.to_owned(), info.content_type.as_str().into());
    let custom = info.custom.iter().map(|(k, v)| json!({ "k": k, "v": v }));
    json!({
        "name": info.key,
        "version": info.etag[..info.etag.len().min(32)],
        "size": info.size,
        "etag": info.etag,
        "uploaded": info.uploaded_at.millis(),
        "httpFields": http,
        "customFields": custom.collect::<Vec<_>>(),
        "checksums": { "2": info.etag },
    })
}
