//! The part of an upload that says what the script is.

use serde::Serialize;
use serde_json::{Value, json};

use crate::binding::BoundTo;

/// What a tag begins with that says whose a worker is.
const OWNER_TAG: &str = "core-owner:";

/// What an upload leaves as it is: nobody but the provider has the values of secrets.
const SECRETS: [&str; 2] = ["secret_text", "secret_key"];

/// Whose a worker with these tags is.
pub(super) fn owner_of(tags: &[String]) -> Option<&str> {
    tags.iter().find_map(|tag| tag.strip_prefix(OWNER_TAG))
}

/// The metadata of an upload.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Metadata {
    main_module: String,
    compatibility_date: String,
    bindings: Vec<Value>,
    keep_bindings: [&'static str; 2],
    tags: [String; 1],
}

impl Metadata {
    pub(super) fn new(
        main_module: String,
        compatibility_date: &str,
        bindings: Vec<Value>,
        owner: &str,
    ) -> Self {
        Self {
            main_module,
            compatibility_date: compatibility_date.to_owned(),
            bindings,
            keep_bindings: SECRETS,
            tags: [format!("{OWNER_TAG}{owner}")],
        }
    }
}

/// What a script calls an object, and the object as the API knows it.
pub(super) fn binding_json(name: &str, bound_to: &BoundTo) -> Value {
    match bound_to {
        BoundTo::Kv { id } => json!({ "type": "kv_namespace", "name": name, "namespace_id": id }),
        BoundTo::D1 { id } => json!({ "type": "d1", "name": name, "id": id }),
        BoundTo::R2 { bucket } => {
            json!({ "type": "r2_bucket", "name": name, "bucket_name": bucket })
        }
        BoundTo::Queue { queue } => json!({ "type": "queue", "name": name, "queue_name": queue }),
        BoundTo::Worker { service } => {
            json!({ "type": "service", "name": name, "service": service })
        }
    }
}

/// A text that a script can read.
pub(super) fn var_json(name: &str, text: &str) -> Value {
    json!({ "type": "plain_text", "name": name, "text": text })
}
