//! The metadata part of an upload, which describes the script.

use serde::Serialize;
use serde_json::{Value, json};

use crate::binding::BindingTarget;

/// The prefix of the tag that contains the owner of a worker.
const OWNER_TAG: &str = "core-owner:";

/// The binding types that an upload keeps unchanged: only the provider knows the values of secrets.
const SECRETS: [&str; 2] = ["secret_text", "secret_key"];

/// Returns the owner of a worker from its tags.
pub(super) fn owner_of(tags: &[String]) -> Option<&str> {
    tags.iter().find_map(|tag| tag.strip_prefix(OWNER_TAG))
}

/// The metadata of a script upload.
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

/// Returns the API form of a binding to an object.
pub(super) fn binding_json(name: &str, bound_to: &BindingTarget) -> Value {
    match bound_to {
        BindingTarget::Kv { id } => {
            json!({ "type": "kv_namespace", "name": name, "namespace_id": id })
        }
        BindingTarget::D1 { id } => json!({ "type": "d1", "name": name, "id": id }),
        BindingTarget::R2 { bucket } => {
            json!({ "type": "r2_bucket", "name": name, "bucket_name": bucket })
        }
        BindingTarget::Queue { queue } => {
            json!({ "type": "queue", "name": name, "queue_name": queue })
        }
        BindingTarget::Worker { service } => {
            json!({ "type": "service", "name": name, "service": service })
        }
    }
}

/// Returns the API form of a variable.
pub(super) fn var_json(name: &str, text: &str) -> Value {
    json!({ "type": "plain_text", "name": name, "text": text })
}
