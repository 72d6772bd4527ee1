//! What a stack is made of: the keys of a `stackDefinition` that are known.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kernel::Environment;
use crate::registry::{FeatureVersion, NewFeatureId, ResourceType};
use crate::stacks::{AppName, AppType, PartName};

/// The most resources, features or apps of a definition.
pub(super) const MAX_ITEMS: usize = 50;

/// What a stack is made of. A definition is an object of any keys and at most 256 KiB, kept as it came; these keys have a
/// meaning, and are checked when a version is published:
///
/// - the names of resources and of what apps are made of (`{app}`, `{app}-svc`, `{app}-db`) are unique;
/// - `modules`, of which `mainModule` is one, are for workers; a path has letters, digits and `._-+@$()[]` between slashes,
///   and is not `metadata`; `bindings` and `vars`, whose names are unique, are for workers and pages; there are at most 128
///   `vars` of 5 KiB each;
/// - a binding names another resource of the stack, or the database of one of its apps, that is there in the same
///   environments and is no pages project, and bindings of workers make no circle.
///
/// Stores are made first, then workers, each after those it is bound to, then pages, features and apps.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("examples" = [{
    "resources": [
        { "name": "db", "type": "d1" },
        { "name": "api", "type": "worker", "bindings": [{ "name": "DB", "resource": "db" }] },
        { "name": "site", "type": "pages", "bindings": [{ "name": "API", "resource": "api" }] },
    ],
    "features": [{ "id": "search", "version": "1.0.0" }],
    "apps": [{ "name": "admin", "type": "fullstack", "withDatabase": true }],
}]))]
pub struct StackDefinition {
    /// Its resources.
    #[serde(default)]
    #[schemars(length(max = MAX_ITEMS))]
    pub resources: Vec<ResourceDefinition>,
    /// The features that its entity shall have.
    #[serde(default)]
    #[schemars(length(max = MAX_ITEMS))]
    pub features: Vec<FeatureDefinition>,
    /// The apps it begins with.
    #[serde(default)]
    #[schemars(length(max = MAX_ITEMS))]
    pub apps: Vec<AppDefinition>,
}

/// A resource of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceDefinition {
    /// Its name in the stack, and the service name of its entry in the catalogue.
    pub name: PartName,
    /// What kind of object it is.
    #[serde(rename = "type")]
    pub resource_type: ResourceType,
    /// The environment it is there in; all when not said.
    pub environment: Option<Environment>,
    /// For a worker, the text of each module by its path. A worker without begins with a script of ours.
    #[serde(default)]
    pub modules: BTreeMap<String, String>,
    /// For a worker with modules, the one that is run.
    pub main_module: Option<String>,
    /// What a worker or a pages project can reach.
    #[serde(default)]
    #[schemars(length(max = MAX_ITEMS))]
    pub bindings: Vec<BindingDefinition>,
    /// Texts that a worker or a pages project can read, by name: no secrets. The names are as those of bindings.
    #[serde(default)]
    pub vars: BTreeMap<String, String>,
}

/// What a resource of a stack can reach.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BindingDefinition {
    /// What the script calls it: an identifier.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"), extend("examples" = ["DB"]))]
    pub name: String,
    /// The resource, by its name in the stack.
    pub resource: PartName,
}

/// A feature of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeatureDefinition {
    /// The feature.
    pub id: NewFeatureId,
    /// Its version.
    pub version: FeatureVersion,
}

/// An app of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppDefinition {
    /// Its name.
    pub name: AppName,
    /// What it is made of.
    #[serde(rename = "type")]
    pub app_type: AppType,
    /// Whether it has a database.
    #[serde(default)]
    pub with_database: bool,
}
