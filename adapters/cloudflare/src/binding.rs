//! The bindings of scripts and sites: objects of the same owner, and variables.

use std::collections::BTreeMap;

use core_domain::registry::ResourceType;
use serde::Deserialize;

/// Variables: texts by name.
pub(crate) type Vars = BTreeMap<String, String>;

/// An object that a script or site can use under a name.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Binding {
    /// The name of the binding in the script.
    pub(crate) name: String,
    /// The resource type of the object.
    #[serde(rename = "type")]
    pub(crate) resource_type: ResourceType,
    /// The name of the object.
    pub(crate) resource: String,
}

/// A reference to an object in the form that the API requires: an id for some types, a name for others.
#[derive(Clone, Debug)]
pub(crate) enum BindingTarget {
    Kv { id: String },
    D1 { id: String },
    R2 { bucket: String },
    Queue { queue: String },
    Worker { service: String },
}
