//! What a script or a site can reach: objects of the same owner, and texts.

use std::collections::BTreeMap;

use core_domain::registry::ResourceType;
use serde::Deserialize;

/// Texts by the names they are read by.
pub(crate) type Vars = BTreeMap<String, String>;

/// One object that can be reached.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Binding {
    /// What the script calls it.
    pub(crate) name: String,
    /// What kind of object it is.
    #[serde(rename = "type")]
    pub(crate) resource_type: ResourceType,
    /// The object's name.
    pub(crate) resource: String,
}

/// An object as the API wants it named: some by their ids.
#[derive(Clone, Debug)]
pub(crate) enum BoundTo {
    Kv { id: String },
    D1 { id: String },
    R2 { bucket: String },
    Queue { queue: String },
    Worker { service: String },
}
